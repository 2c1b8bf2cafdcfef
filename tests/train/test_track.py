"""`callbacks.Track`: what a tracker of experiments gets, and that its failures end nothing."""

import asyncio
import os
import subprocess
import sys

import pytest

import synmod as sm
from tests.train.test_fit import Try, fit


class Tracker:
    """Keeps what it gets."""

    def __init__(self):
        self.params, self.metrics, self.texts, self.programs = {}, {}, {}, []

    def log_params(self, params):
        self.params |= params

    def log_metrics(self, metrics, step):
        self.metrics[step] = metrics

    def log_text(self, text, artifact_file):
        self.texts[artifact_file] = text

    def log_artifact(self, local_path):
        self.programs.append(sm.load(local_path))


def track(tracker):
    """Train with a tracker; return the History."""
    return asyncio.run(fit(Try("x" * 50, "x" * 60), callbacks=[sm.callbacks.Track(tracker)]))[0]


def test_a_tracker_gets_settings_numbers_changes_and_the_program():
    """Each in its function."""
    tracker = Tracker()
    history = track(tracker)
    assert tracker.params["optimizer"] == "Try"
    assert tracker.params["seed"] == 0
    assert [round(tracker.metrics[step]["val_reward"], 2) for step in (0, 1)] == [0.5, 0.6]
    assert list(tracker.texts) == [f"candidates/{candidate.id}.txt" for candidate in history.candidates[1:]]
    assert list(tracker.texts.values())[1] == history.diff()
    (program,) = tracker.programs
    assert sm.state(program)["0/instructions"].value == "x" * 60


def test_a_tracker_that_fails_is_a_warning():
    """Training continues to its end, whatever the tracker raises."""

    class Fails(Tracker):
        def log_metrics(self, metrics, step):
            raise OSError("no route to the tracker")

    with pytest.warns(sm.SynmodWarning, match="log_metrics failed: OSError: no route"):
        history = track(Fails())
    assert history.stopped == "done"


def test_an_object_that_is_no_tracker_is_refused():
    """Its missing functions are listed."""
    with pytest.raises(sm.ArgumentError, match="lacks log_params, log_metrics, log_text, log_artifact"):
        sm.callbacks.Track(object())


@pytest.mark.slow
def test_mlflow_is_a_tracker(tmp_path):
    """The module itself, with runs in a folder."""
    pytest.importorskip("mlflow")
    code = """
import mlflow, sys
from tests.train.test_track import track
mlflow.set_tracking_uri(sys.argv[1])
mlflow.create_experiment("fits", artifact_location=sys.argv[2])
mlflow.set_experiment("fits")
with mlflow.start_run() as run:
    track(mlflow)
client = mlflow.MlflowClient()
of = client.get_run(run.info.run_id).data
names = sorted(file.path for file in client.list_artifacts(run.info.run_id))
print(of.params["optimizer"], round(of.metrics["val_reward"], 2), names)
"""
    environment = {**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true"}
    call = [sys.executable, "-c", code, (tmp_path / "runs").as_uri(), (tmp_path / "files").as_uri()]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[-2] == "Try 0.6 ['candidates', 'program.json']", done.stderr[-2000:]
