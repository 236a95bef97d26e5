/* empty.js - an empty script; the row js.start is the time to run it. */
