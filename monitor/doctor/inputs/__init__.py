"""The facts that the checks judge, read where they are. Nothing here decides, changes anything, or waits for ever."""
