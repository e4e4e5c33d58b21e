"""Parts that several commands share: kubectl's flags, exit codes, tables, trees, printing."""
