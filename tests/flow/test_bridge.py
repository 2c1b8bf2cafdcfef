"""The bridge: one loop for the main thread, contexts that hold, signals, threads."""

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types

import pytest
import trio

from synmod.errors import ArgumentError, DeadlineExceeded, RunError
from synmod.flow import in_thread, run
from synmod.leaves import aio
from synmod.scope import current_phase, deadline, phase

WHERE = contextvars.ContextVar("where", default="nowhere")


async def add(a, b=1):
    await asyncio.sleep(0)
    return a + b


def test_a_function_with_arguments_or_an_awaitable():
    """Both forms give the result."""
    assert run(add, 1, 2) == 3
    assert run(add(1)) == 2


def test_any_awaitable_and_any_callable_serve():
    """Objects with `__await__`, and callables that give one."""

    class Later:
        def __await__(self):
            return add(1).__await__()

    assert run(Later()) == 2
    assert run(lambda: Later()) == 2


def test_the_main_thread_has_one_loop_for_all_calls():
    """Connections live on from call to call, also when asyncio.run is used between them."""

    async def loop():
        return asyncio.get_running_loop()

    first = run(loop)
    assert asyncio.run(loop()) is not first
    assert run(loop) is first


def test_another_thread_gets_a_loop_for_the_call():
    """The loop of a worker thread is closed when the call ends."""
    loops = []

    async def loop():
        loops.append(asyncio.get_running_loop())

    def work():
        run(loop)
        run(loop)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    run(loop)
    assert len(set(map(id, loops))) == 3
    assert loops[0].is_closed()
    assert not loops[2].is_closed()


def test_the_callers_context_holds_inside():
    """ContextVars and phases of the caller are seen; what is set inside stays inside."""

    async def look():
        seen = WHERE.get(), current_phase()
        WHERE.set("inside")
        return seen

    token = WHERE.set("outside")
    try:
        with phase("reward"):
            assert run(look) == ("outside", "reward")
        assert WHERE.get() == "outside"
    finally:
        WHERE.reset(token)


def test_errors_are_raised_as_themselves():
    """The same exception object reaches the caller, and the loop goes on."""
    failure = LookupError("no")

    async def fail():
        raise failure

    with pytest.raises(LookupError) as caught:
        run(fail)
    assert caught.value is failure
    assert run(add, 1) == 2


@pytest.mark.parametrize("start", [lambda main: asyncio.run(main()), lambda main: trio.run(main)])
def test_inside_a_running_loop_the_line_to_write_is_shown(start):
    """RunError contains 'await'; a coroutine given is closed without a warning."""

    async def main():
        with pytest.raises(RunError, match=r"await .*add\(\.\.\.\)"):
            run(add, 1)
        with pytest.raises(RunError, match=r"await .*add\(\.\.\.\)"):
            run(add(1))

    start(main)


def test_in_a_notebook_the_cell_waits_for_a_thread(monkeypatch):
    """In the running loop of an IPython kernel the code runs to its end beside it, in the caller's context."""
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))

    async def work(x, *, y):
        await asyncio.sleep(0)
        return x + y, current_phase(), threading.get_ident(), asyncio.get_running_loop()

    async def fail():
        raise LookupError("no")

    async def cell():
        with phase("reward"):
            total, inside, thread, loop = run(work, 1, y=2)
        assert (total, inside) == (3, "reward")
        assert thread != threading.get_ident()
        assert loop is not asyncio.get_running_loop()
        with pytest.raises(LookupError, match="no"):
            run(fail())

    asyncio.run(cell())
    shell.kernel = None  # IPython in a terminal, or another loop of its own
    with pytest.raises(RunError, match="await"):
        asyncio.run(cell())


def test_inside_what_a_cell_runs_the_line_to_write_is_shown(monkeypatch):
    """The loop of the thread is not the kernel's: `run` inside `run` is a RunError there as anywhere."""
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))

    async def outer():
        return run(add, 1)

    async def cell():
        with pytest.raises(RunError, match=r"await add\(\.\.\.\)"):
            run(outer)

    asyncio.run(cell())


@pytest.mark.parametrize("main", [3, "text", None, lambda: 3])
def test_what_cannot_be_awaited_is_an_argument_error(main):
    """Neither a coroutine function nor an awaitable."""
    with pytest.raises(ArgumentError):
        run(main)


def test_an_awaitable_takes_no_arguments():
    """ArgumentError, and the coroutine is closed."""
    with pytest.raises(ArgumentError, match="function"):
        run(add(1), 2)


def test_a_deadline_around_run_limits_it():
    """Entered where no loop runs, the deadline cancels what runs inside and raises."""

    async def slow():
        await asyncio.sleep(60)

    started = time.monotonic()
    with pytest.raises(DeadlineExceeded), deadline(0.05):
        run(slow)
    assert time.monotonic() - started < 5
    assert run(add, 1) == 2


def test_a_task_that_leaves_by_system_exit_leaves_nothing_behind():
    """SystemExit of a child is raised, and the main task has ended by then."""
    ended = []

    async def leave():
        await asyncio.sleep(0)
        raise SystemExit(3)

    async def main():
        task = asyncio.ensure_future(leave())
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(task.done())

    with pytest.raises(SystemExit):
        run(main)
    assert ended == [True]
    assert run(add, 1) == 2


def test_system_exit_in_a_branch_leaves_once():
    """Out of a group that the main task holds open: raised, and no word of it is left to the loop."""
    from synmod.flow import together

    async def leave():
        await asyncio.sleep(0)
        raise SystemExit(4)

    with pytest.raises(SystemExit) as caught:
        run(together, leave, lambda: asyncio.sleep(60))
    assert caught.value.code == 4
    assert run(add, 1) == 2


def script(body, *signals, wait=0.3):
    """Run a script that prints 'ready', send signals to it, and give its return code and output."""
    code = "import asyncio, sys, time\nfrom synmod.flow import run\n" + textwrap.dedent(body)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "ready"
    for number in signals:
        process.send_signal(number)
        time.sleep(wait)
    output, errors = process.communicate(timeout=20)
    return process.returncode, output, errors


CLEAN = """
    async def main():
        print("ready", flush=True)
        try:
            await asyncio.sleep(60)
        finally:
            print("cleaned", flush=True)
    run(main)
"""


def test_ctrl_c_cancels_and_ends_by_keyboard_interrupt():
    """The first Ctrl-C lets clean-up run; the process ends by the signal (130 in a shell)."""
    code, output, errors = script(CLEAN, signal.SIGINT)
    assert output.strip() == "cleaned"
    assert code == -signal.SIGINT
    assert "KeyboardInterrupt" in errors


def test_sigterm_cancels_and_ends_with_143():
    """The first SIGTERM lets clean-up run; the exit code is 143."""
    code, output, _ = script(CLEAN, signal.SIGTERM)
    assert output.strip() == "cleaned"
    assert code == 143


@pytest.mark.parametrize(("number", "codes"), [(signal.SIGINT, {-2, 130}), (signal.SIGTERM, {143, -15})])
@pytest.mark.slow
@pytest.mark.interpreter
def test_the_second_signal_leaves_at_once(number, codes):
    """Code that refuses to be cancelled cannot hold the process."""
    body = """
        async def main():
            print("ready", flush=True)
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass
        run(main)
    """
    started = time.monotonic()
    code, _, _ = script(body, number, number)
    assert code in codes
    assert time.monotonic() - started < 10


def test_signal_handlers_are_put_back():
    """After a run the process has the handlers it had; a user's own one is never replaced."""
    mine = signal.signal(signal.SIGTERM, handler := lambda *_: None)
    seen = []

    async def look():
        seen.append(signal.getsignal(signal.SIGTERM))
        seen.append(signal.getsignal(signal.SIGINT))

    try:
        before = signal.getsignal(signal.SIGINT)
        run(look)
        assert seen[0] is handler
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGTERM, mine)


def test_the_loop_is_closed_at_exit():
    """A script that used the bridge ends without a word."""
    code = "import asyncio\nfrom synmod.flow import run\nrun(asyncio.sleep, 0)\nrun(asyncio.sleep, 0)"
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_in_thread_runs_elsewhere_with_the_context(any_loop):
    """A worker thread, the caller's context, the result and the error as they are."""

    def look(x, *, y):
        if x < 0:
            raise LookupError(x)
        return threading.get_ident(), WHERE.get(), x + y

    async def main():
        WHERE.set("caller")
        thread, where, total = await in_thread(look)(1, y=2)
        assert thread != threading.get_ident()
        assert (where, total) == ("caller", 3)
        with pytest.raises(LookupError):
            await in_thread(look)(-1, y=0)

    any_loop(main)


def test_at_most_eight_threads_work_at_once(any_loop):
    """Forty calls share eight threads."""
    lock = threading.Lock()
    now = most = 0

    def work():
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    async def main():
        async with aio.task_group() as group:
            for _ in range(40):
                group.start_soon(in_thread(work))

    any_loop(main)
    assert most == 8


async def test_a_cancelled_caller_that_waits_for_a_thread_never_begins():
    """Work whose turn has not come is not done for nobody."""
    release, begun = threading.Event(), []
    holding = [asyncio.ensure_future(in_thread(release.wait)()) for _ in range(8)]
    late = asyncio.ensure_future(in_thread(lambda: begun.append(True))())
    await asyncio.sleep(0.05)
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    release.set()
    await asyncio.gather(*holding)
    assert begun == []


def test_in_thread_keeps_the_signature_and_refuses_coroutines():
    """The wrapper has the name of the function; an async function needs no thread."""

    def work():
        """Work."""

    assert in_thread(work).__name__ == "work"
    with pytest.raises(ArgumentError, match="await"):
        in_thread(add)
    with pytest.raises(ArgumentError):
        in_thread(3)


CHILDREN = """
    import multiprocessing, os, signal, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # of Python, about threads
    context = multiprocessing.get_context("fork")

    def work():
        if NESTED:
            run(asyncio.sleep, 60)
        time.sleep(60)

    async def main():
        child = context.Process(target=work)
        child.start()
        await asyncio.sleep(0.5)
        child.terminate()
        child.join(10)
        print("child", child.exitcode, flush=True)
        with context.Pool(2) as pool:
            pool.apply_async(time.sleep, (60,))
            await asyncio.sleep(0.2)
        pool.join()
        print("pool", flush=True)
        print("own handler", signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL)

    print("ready", flush=True)
    run(main)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(("nested", "code"), [(False, -signal.SIGTERM), (True, 143)])
@pytest.mark.slow
@pytest.mark.interpreter
def test_sigterm_ends_a_child_that_was_forked_inside_a_run(nested, code):
    """By the default handler, or by that of its own run; the parent's handlers stay."""
    ended, output, errors = script(CHILDREN.replace("NESTED", str(nested)))
    assert (ended, output.splitlines(), errors) == (0, [f"child {code}", "pool", "own handler True"], "")
