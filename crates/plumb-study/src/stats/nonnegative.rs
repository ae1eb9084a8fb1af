//! Least squares with some coefficients that must not be negative [Lawson & Hanson 1974, ch. 23].

/// Solves `min |y − C·d|²` for d ≥ 0.
///
/// `columns` are the columns of C, each as long as `y`. The answer has one coefficient per column. A
/// column that is a multiple of others, or zero, gets 0.
#[must_use]
pub fn solve(columns: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let norms: Vec<f64> = columns.iter().map(|column| dot(column, column).sqrt()).collect();
    let unit: Vec<Vec<f64>> = columns
        .iter()
        .zip(&norms)
        .map(|(column, norm)| {
            column.iter().map(|c| if *norm > 0.0 { c / norm } else { 0.0 }).collect()
        })
        .collect();
    let gram: Vec<Vec<f64>> =
        unit.iter().map(|a| unit.iter().map(|b| dot(a, b)).collect()).collect();
    let target: Vec<f64> = unit.iter().map(|a| dot(a, y)).collect();
    let scaled = active_set(&gram, &target, &norms, dot(y, y).sqrt());
    scaled.iter().zip(&norms).map(|(d, norm)| if *norm > 0.0 { d / norm } else { 0.0 }).collect()
}

fn active_set(gram: &[Vec<f64>], target: &[f64], norms: &[f64], size: f64) -> Vec<f64> {
    let count = target.len();
    let largest = norms.iter().copied().fold(0.0, f64::max);
    // Directions shorter than this are rounding.
    let usable: Vec<bool> = norms.iter().map(|norm| *norm > largest * 1e-9).collect();
    let tolerance = 1e-10 * size;
    let mut solution = vec![0.0; count];
    let mut active: Vec<usize> = Vec::new();
    let mut barred = vec![false; count];
    for _ in 0..20 * count + 20 {
        let gradient =
            |j: usize| target[j] - active.iter().map(|k| gram[j][*k] * solution[*k]).sum::<f64>();
        let candidate = (0..count)
            .filter(|j| usable[*j] && !barred[*j] && !active.contains(j))
            .map(|j| (j, gradient(j)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((entering, slope)) = candidate else { break };
        if slope <= tolerance {
            break;
        }
        active.push(entering);
        loop {
            let Some(trial) = cholesky_solve(gram, target, &active) else {
                // It adds no direction of its own.
                active.retain(|j| *j != entering);
                barred[entering] = true;
                break;
            };
            if trial.iter().all(|value| *value > 0.0) {
                for (j, value) in active.iter().zip(trial) {
                    solution[*j] = value;
                }
                barred.fill(false);
                break;
            }
            let mut step = 1.0_f64;
            for (j, value) in active.iter().zip(&trial) {
                if *value <= 0.0 {
                    step = step.min(solution[*j] / (solution[*j] - value));
                }
            }
            for (j, value) in active.iter().zip(&trial) {
                solution[*j] += step * (value - solution[*j]);
            }
            let before = active.len();
            active.retain(|j| solution[*j] > 1e-14);
            if active.len() == before {
                // Rounding: leave out the smallest.
                let smallest = (0..before)
                    .min_by(|a, b| solution[active[*a]].total_cmp(&solution[active[*b]]))
                    .expect("a coefficient is active");
                active.remove(smallest);
            }
            for (j, value) in solution.iter_mut().enumerate() {
                if !active.contains(&j) {
                    *value = 0.0;
                }
            }
            if !active.contains(&entering) {
                barred[entering] = true;
            }
            if active.is_empty() {
                break;
            }
        }
    }
    solution
}

/// Solves the normal equations of the active columns; `None` where they depend on each other.
fn cholesky_solve(gram: &[Vec<f64>], target: &[f64], active: &[usize]) -> Option<Vec<f64>> {
    let size = active.len();
    let mut lower = vec![vec![0.0; size]; size];
    for row in 0..size {
        for column in 0..=row {
            let inner: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let rest = gram[active[row]][active[column]] - inner;
            if row == column {
                if rest <= 1e-13 {
                    return None;
                }
                lower[row][row] = f64::sqrt(rest);
            } else {
                lower[row][column] = rest / lower[column][column];
            }
        }
    }
    let mut middle = vec![0.0; size];
    for row in 0..size {
        let inner: f64 = (0..row).map(|k| lower[row][k] * middle[k]).sum();
        middle[row] = (target[active[row]] - inner) / lower[row][row];
    }
    let mut answer = vec![0.0; size];
    for row in (0..size).rev() {
        let inner: f64 = (row + 1..size).map(|k| lower[k][row] * answer[k]).sum();
        answer[row] = (middle[row] - inner) / lower[row][row];
    }
    Some(answer)
}

/// The inner product.
#[must_use]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(columns: &[&[f64]], y: &[f64], wanted: &[f64]) {
        let columns: Vec<Vec<f64>> = columns.iter().map(|column| column.to_vec()).collect();
        let found = solve(&columns, y);
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
        }
    }

    #[test]
    fn coefficients_that_would_be_negative_are_zero() {
        check(&[&[1.0, 0.0], &[0.0, 1.0]], &[2.0, -3.0], &[2.0, 0.0]);
        // Free, the second would be −1 and the first 3; alone the first is 2.5.
        check(&[&[1.0, 1.0], &[1.0, 0.0]], &[2.0, 3.0], &[2.5, 0.0]);
        check(&[&[1.0, 1.0, 0.0], &[0.0, 1.0, 1.0]], &[1.0, 3.0, 2.0], &[1.0, 2.0]);
    }

    #[test]
    fn columns_that_depend_on_others_do_no_harm() {
        let found = solve(&[vec![1.0, 2.0], vec![2.0, 4.0], vec![0.0, 0.0]], &[3.0, 6.0]);
        assert!((found[0] + 2.0 * found[1] - 3.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found[2], 0.0);
        assert!(solve(&[], &[1.0]).is_empty());
    }

    /// What the best solution must satisfy: no gradient where a coefficient is positive, none upwards
    /// where it is 0.
    #[test]
    fn hinges_of_a_curve_are_solved_to_the_optimum() {
        let place = |index: u32| f64::from(8 + index).ln();
        for wobble in [0.0, 0.001, 0.02, 0.1] {
            let y: Vec<f64> = (0..29)
                .map(|i| -(-place(i) / 1.5).exp() + wobble * (f64::from(i) * 2.7).sin())
                .collect();
            let columns: Vec<Vec<f64>> = (1..28)
                .map(|knot| (0..29).map(|i| place(i).min(place(knot)) - place(knot)).collect())
                .collect();
            let found = solve(&columns, &y);
            let rest: Vec<f64> = (0..29)
                .map(|i| y[i] - columns.iter().zip(&found).map(|(c, d)| c[i] * d).sum::<f64>())
                .collect();
            for (column, coefficient) in columns.iter().zip(&found) {
                let gradient = dot(column, &rest) / dot(column, column).sqrt();
                assert!(*coefficient >= 0.0 && gradient < 1e-6, "{gradient}");
                assert!(*coefficient == 0.0 || gradient.abs() < 1e-6, "{gradient}");
            }
        }
    }
}
