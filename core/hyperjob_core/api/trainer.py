"""The names of the API of Kubeflow Trainer, and HyperJob's label and annotation for TrainJobs."""

from typing import Final

from hyperjob_core.api.names import GROUP

TRAINER_GROUP: Final = "trainer.kubeflow.org"
TRAINJOB_KIND: Final = "TrainJob"
RUNTIME_KIND: Final = "TrainingRuntime"
CLUSTER_RUNTIME_KIND: Final = "ClusterTrainingRuntime"

TRAINER_CONTROLLER: Final = f"{TRAINER_GROUP}/trainjob-controller"
"""The value of `managedBy` that the CRD sets, and the only value with which HyperJob acts."""

RUNS_AS: Final = f"{GROUP}/runs-as"
"""The label on a TrainJob, its runtime or its namespace that makes a TrainJob a HyperJob."""
RUNS_AS_HYPERJOB: Final = "HyperJob"
SPREAD: Final = f"{GROUP}/spread"
"""The annotation on a TrainJob or its runtime with clusters, split, queue and quorum."""
TTL: Final = f"{GROUP}/trainjob-ttl"
"""The annotation of a HyperJob with the seconds from the end of its TrainJob to its deletion."""
HOSTFILE: Final = f"{GROUP}/mpi-hostfile"
"""The annotation of the launcher of an MPI training with its hostfile."""
LABEL_TRAINJOB: Final = f"{GROUP}/trainjob"
"""The label of a HyperJob with the name of its TrainJob."""

ANCESTOR: Final = f"{TRAINER_GROUP}/trainjob-ancestor-step"
TRAINER_STEP: Final = "trainer"
DATASET_STEP: Final = "dataset-initializer"
MODEL_STEP: Final = "model-initializer"
NODE: Final = "node"
"""The name of the container that trains."""
PORT: Final = 29500
"""The port on which the first node waits for the others."""

COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB_NAME: Final = "jobset.sigs.k8s.io/replicatedjob-name"
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
KUEUE_QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"
"""The types of a TrainJob's conditions."""
