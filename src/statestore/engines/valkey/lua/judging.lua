-- Preconditions, judged before anything is written: a script cannot take back what it did.

-- Why a change may not be made, or nil. `requires` is {absent, present, version, owner, created}, or false.
local function objection(requires, there, must_exist)
    if not there then
        if must_exist or (requires and (requires[2] or requires[3])) then
            return 'missing'
        end
        return nil
    end
    if not requires then
        return nil
    end
    if requires[4] and there.user ~= requires[4] then
        return 'owner'
    end
    if requires[5] and there.created ~= requires[5] then
        return 'missing'
    end
    if requires[1] then
        return 'exists'
    end
    if requires[3] and there.version ~= requires[3] then
        return 'version'
    end
    return nil
end
