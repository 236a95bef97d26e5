-- Sixteen requests at a time on each connection, for wrk.
local batch

function init()
	batch = string.rep(wrk.format("GET"), 16)
end

function request()
	return batch
end
