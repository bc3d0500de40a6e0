"""From the logs of runs to tables, figures and pages."""
