"""Creates special files in the output directory."""
import os
import socket

os.chdir("/workspace/out")
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
os.symlink("/dev/zero", "endless")
os.symlink("nowhere", "broken")
with open("plain.txt", "w") as file:
    file.write("plain\n")
os.link("plain.txt", "twin.txt")
with open("good.txt", "w") as file:
    file.write("good\n")
print("made", flush=True)
