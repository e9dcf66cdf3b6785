/** For the beginning of a Lua script: `redisNowMs()` is the time by Redis's own clock, in milliseconds since the epoch. */
export const REDIS_NOW = `
local function redisNowMs()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
`;
