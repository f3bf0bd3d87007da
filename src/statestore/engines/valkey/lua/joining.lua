-- Many texts as one, since each that is given back by itself costs the reader time: how long each of them is, and all of
-- them in one.

local function joined(texts)
    local lengths = {}
    for place, text in ipairs(texts) do
        lengths[place] = #text
    end
    return table.concat(lengths, ' '), table.concat(texts)
end
