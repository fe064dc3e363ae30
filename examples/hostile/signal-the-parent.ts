// Tries to reach the process that started it. Signal 0 only asks whether it could be sent.

process.kill(process.ppid, 0)
