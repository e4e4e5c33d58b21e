"""Workloads are read from our CSV and from files in the formats of the public traces."""

import json
from pathlib import Path

import pytest

from hyperjob_sandbox.simulate.readers import read
from hyperjob_sandbox.simulate.workload import WorkloadError

PHILLY = [
    {
        "status": "Pass",
        "vc": "AA11",
        "jobid": "application_15_2",
        "submitted_time": "2017-10-07 02:00:00",
        "attempts": [
            {
                "start_time": "2017-10-07 02:00:30",
                "end_time": "2017-10-07 02:10:30",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
            },
            {
                "start_time": "2017-10-07 02:20:00",
                "end_time": "2017-10-07 02:30:00",
                "detail": [
                    {"ip": "m1", "gpus": ["gpu0", "gpu1"]},
                    {"ip": "m2", "gpus": ["gpu4", "gpu5"]},
                ],
            },
        ],
    },
    {"vc": "bb", "jobid": "application_15_1", "submitted_time": "2017-10-07 01:00:00",
     "attempts": [{"start_time": "2017-10-07 01:00:00", "end_time": None, "detail": []}]},
    {"vc": "bb", "jobid": "application_15_3", "submitted_time": "2017-10-07 01:59:00",
     "attempts": [{"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:00:50",
                   "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
]  # fmt: skip
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,duration,queue
7,ua,vcAA,8,32,1,COMPLETED,2020-06-09 18:41:01,3600,0
8,ub,vcBB,0,4,1,COMPLETED,2020-06-09 18:41:05,3600,0
6,ub,vcBB,64,4,8,FAILED,2020-06-09 18:40:01,120,64
"""
TASKS = """aaaaaaaaaaaaaaaa,ps,2.0,Terminated,100.0,400.0,600.0,29.29,,
aaaaaaaaaaaaaaaa,worker,4.0,Terminated,110.0,500.0,600.0,29.29,50.0,MISC
bbbbbbbbbbbbbbbb,tensorflow,1.0,Terminated,50.0,90.0,600.0,29.29,200.0,V100
cccccccccccccccc,tensorflow,1.0,Running,60.0,,600.0,29.29,100.0,V100
"""
OPENB = """\
name,cpu_milli,num_gpu,gpu_milli,qos,creation_time,deletion_time,scheduled_time
openb-pod-0001,4000,1,220,BE,1000,1600,1100
openb-pod-0002,4000,0,0,LS,1000,1600,1100
openb-pod-0003,88000,8,1000,Burstable,900,2900,900
openb-pod-0004,88000,8,1000,Burstable,950,,
"""


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("philly", json.dumps(PHILLY), [(0.0, 50.0, 1, "bb"), (60.0, 1200.0, 4, "aa11")]),
        ("helios", HELIOS, [(0.0, 120.0, 64, "vcbb"), (60.0, 3600.0, 8, "vcaa")]),
        ("alibaba2020", TASKS, [(0.0, 40.0, 2, "default"), (60.0, 390.0, 4, "default")]),
        ("alibaba2023", OPENB, [(0.0, 2000.0, 8, "burstable"), (100.0, 500.0, 1, "be")]),
        (
            "csv",
            "submit,duration,gpus,queue\n1h,90m,16,research\n30,45.5,1,\n",
            [(30.0, 45.5, 1, "default"), (3600.0, 5400.0, 16, "research")],
        ),
    ],
)
def test_a_format_is_recognised_and_read(
    form: str, text: str, expected: list[tuple[float, float, int, str]], tmp_path: Path
) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    for each in ("auto", form):
        jobs = read(path, form=each)
        assert [(job.arrival, job.duration, job.gpus, job.queue) for job in jobs] == expected
        assert len({job.name for job in jobs}) == len(jobs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submit,gpus\n1,1\n", "column duration is missing"),
        ("submit,duration,gpus,gpu\n1,1,1,1\n", "column gpu is unknown"),
        ("submit,duration,gpus\n1,soon,1\n", "line 2: 'soon' is not a duration"),
        ("submit,duration,gpus\n1,-5,1\n", "line 2: '-5' is not a time of 0 or more"),
        ("submit,duration,gpus,name\n1,1,1,a\n2,2,2,a\n", "line 3: duplicate name 'a'"),
        ("submit,duration,gpus\n", "contains no job with an accelerator"),
        ('{"jobs": []}', "no list of jobs as in Philly's"),
        ("[1, 2]", "no list of jobs as in Philly's"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(WorkloadError, match=message):
        read(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"none\.csv: No such file"):
        read(tmp_path / "none.csv")
