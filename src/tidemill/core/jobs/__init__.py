"""The life of work: jobs, their tasks, the attempts at a task. The pool and the simulator run exactly these rules."""
