"""TrainJobs of Kubeflow Trainer on the Karmada API server: each becomes a HyperJob."""
