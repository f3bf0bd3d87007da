-- Which of some commands a user may not run here. ARGV[1]: the commands, none of which changes anything.
--
-- The server looks at a user's rights before it looks at arguments and values: a command that makes no sense is refused
-- for another reason if it is allowed. Gives back the command, its key, and what the server said; nothing if all is well.

for _, command in ipairs(cmsgpack.unpack(ARGV[1])) do
    local reply = redis.pcall(unpack(command))
    local problem = type(reply) == 'table' and reply.err
    if problem and (string.find(problem, 'ermission') or string.find(problem, 'NOPERM') or string.find(problem, "can't run")
            or string.find(problem, "can't access") or string.find(problem, 'nknown')) then
        return {command[1], command[2], problem}
    end
end
return false
