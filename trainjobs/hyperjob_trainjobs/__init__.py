"""TrainJobs of Kubeflow Trainer: the HyperJob of a TrainJob, and the TrainJob's status."""
