//! Counts allocations per thread, so that a test can say that a loop makes none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting. A test binary installs it:
///
/// ```
/// use plumb_sys::allocations::{CountingAllocator, count};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let before = count();
/// let boxed = Box::new(1);
/// assert_eq!(count() - before, 1);
/// drop(boxed);
/// assert_eq!(count() - before, 1, "only what asks for memory is counted");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

/// How often the calling thread asked for memory so far: allocations and changes of size. Always 0
/// where the allocator is not installed.
#[must_use]
pub fn count() -> u64 {
    COUNT.with(Cell::get)
}

fn counted() {
    // A thread that is ending may have lost its counter; nobody reads it any more.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every method does as the system's allocator, which keeps the trait's promises; counting
// allocates nothing, for the counter is a constant-initialised thread local without a destructor.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        counted();
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        counted();
        // SAFETY: as our caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        counted();
        // SAFETY: as our caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}
