"""Logs which code blocks a loop for too long; called by weft's watchdog."""
import sys
import traceback

from asyncio.log import logger


def report(thread_id, text):
    frame = sys._current_frames().get(thread_id)
    stack = "".join(traceback.format_stack(frame)) if frame else "  (no Python code)\n"
    logger.error("%s\nStack of its thread (most recent call last):\n%s",
                 text.splitlines()[0], stack.rstrip())
