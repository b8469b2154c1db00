"""Memory of blocks: the same for the next block of a task, apart for each thread and each name."""

import threading

import numpy as np
import pytest

from streamkernel.linalg import BlockMemory, block_array, reused_blocks


def memory_of(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_outside_of_a_task_every_array_is_a_new_one() -> None:
    first, second = block_array("values", (8, 3)), block_array("values", (8, 3))
    first[:], second[:] = 1.0, 2.0
    assert (first == 1.0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_of_a_task_share_their_memory(dtype: str) -> None:
    kind = np.dtype(dtype)
    with reused_blocks():
        first = block_array("values", (100, 7), kind)
        first[:] = 1.0
        second = block_array("values", (60, 7), kind)  # the last block of a leaf is shorter
        assert memory_of(second) == memory_of(first)
        assert second.shape == (60, 7)
        assert second.dtype == kind
        assert second.flags.c_contiguous
        assert second.flags.writeable


def test_a_larger_block_gets_more_memory() -> None:
    with reused_blocks():
        block_array("values", (10, 3))[:] = 1.0
        large = block_array("values", (1000, 3))
        large[:] = 2.0
        assert memory_of(block_array("values", (1000, 3))) == memory_of(large)


def test_memory_begins_with_a_cache_line() -> None:
    with reused_blocks():
        for rows in (1, 3, 1000, 200_000):
            assert memory_of(block_array(f"{rows}", (rows, 3))) % 64 == 0


def test_names_are_apart() -> None:
    with reused_blocks():
        first, second = block_array("values", (10, 3)), block_array("columns", (10, 3))
        first[:], second[:] = 1.0, 2.0
        assert (first == 1.0).all()


def test_threads_are_apart() -> None:
    found: list[int] = []

    def task() -> None:
        found.append(memory_of(block_array("values", (10, 3))))
        with reused_blocks():
            mine = block_array("values", (10, 3))
            mine[:] = 2.0
            found.append(memory_of(mine))

    with reused_blocks():
        first = block_array("values", (10, 3))
        first[:] = 1.0
        thread = threading.Thread(target=task)
        thread.start()
        thread.join()
        assert memory_of(first) not in found
        assert (first == 1.0).all()
        assert memory_of(block_array("values", (10, 3))) == memory_of(first)


def test_a_task_within_a_task_has_memory_of_its_own() -> None:
    with reused_blocks():
        first = block_array("values", (10, 3))
        first[:] = 1.0
        with reused_blocks():
            block_array("values", (10, 3))[:] = 2.0
        assert (first == 1.0).all()
        assert memory_of(block_array("values", (10, 3))) == memory_of(first)


def test_after_an_error_every_array_is_a_new_one() -> None:
    def broken() -> np.ndarray:
        with reused_blocks():
            block_array("values", (10, 3))
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken()
    first, second = block_array("values", (10, 3)), block_array("values", (10, 3))
    first[:], second[:] = 1.0, 2.0
    assert (first == 1.0).all()


def test_blocks_without_values() -> None:
    with reused_blocks():
        assert block_array("values", (0, 3)).shape == (0, 3)
        assert block_array("values", (5, 0)).shape == (5, 0)


def test_tasks_of_a_sweep_share_memory() -> None:
    """One after another in a thread; a task within a task, and another thread, have memory of their own."""
    held = BlockMemory()
    with reused_blocks(held):
        first = block_array("values", (10, 3))
    with reused_blocks(held):
        again = block_array("values", (10, 3))
        assert memory_of(again) == memory_of(first)
        again[:] = 1.0
        with reused_blocks(held):
            block_array("values", (10, 3))[:] = 2.0
        thread = threading.Thread(target=_fill, args=(held,))
        thread.start()
        thread.join()
        assert (again == 1.0).all()
        assert memory_of(block_array("values", (10, 3))) == memory_of(again)
    with reused_blocks(held):
        assert memory_of(block_array("values", (10, 3))) == memory_of(first)


def _fill(held: BlockMemory) -> None:
    with reused_blocks(held):
        block_array("values", (10, 3))[:] = 3.0
