"""What every server of ours is made of: sockets, deadlines for slow clients, logs, traces."""
