-- What several scripts begin with.

local LAST_NUMBER = 9007199254740991
local CHANGE_SESSION, DELETE_SESSION, PUT_DOCUMENT, DELETE_DOCUMENT, DELETE_CATEGORY = 1, 2, 3, 4, 5

-- A text as part of a key: without braces, which are special in a cluster.
local function encoded(text)
    return (string.gsub(text, '[%%{}]', function(found) return string.format('%%%02X', string.byte(found)) end))
end

-- The arguments after the first one, by turns.
local last_blob = 1
local function next_blob()
    last_blob = last_blob + 1
    return ARGV[last_blob]
end
