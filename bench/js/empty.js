/* empty.js - nothing: what it takes to run it is the row js.start. */
