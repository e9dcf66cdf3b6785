import { REDIS_NOW } from '../store/redis-now.ts';

/**
 * ledger-state.ts in Lua, to run inside Redis, one caller a key: no replica can see or change a state half-way. The two
 * have the same rules under the same names; here helpers stand first, as Lua wants it. This one alone answers an exchange twice,
 * that one alone knows shares. test/throttle holds them to the same grants for the same history. Why it is as it is stands there.
 *
 * A state that was kept is read as in kept-state.ts. Its `format` is raised when what is kept changes so that an older petql
 * would misread it; what is merely added, that one leaves as it is. In a rolling update both work on one key, and neither may
 * begin anew what the other spends by: the plan would be spent twice. So the older one leaves a state of a newer format alone:
 * it grants nothing of that key, for a second at a time, while the newer ones serve it; what it has to report is lost, so that
 * its calls count as spent. Once nobody has used it for LEFT_ALONE_MS they are gone, by a roll-back, and it begins anew with
 * what it can read. `format` and `seenMs` mean the same in every format.
 *
 * KEYS[1] holds the state as JSON. ARGV[1] is the exchange as JSON: `reports`, `wanted`, `rules`, the name of the
 * generation that begins when there is no state, and the exchange's `id` in its `replica`: an exchange that is sent again,
 * since its answer was lost on the way, is answered as it was and not carried out twice. ARGV[2] is the time in tests;
 * without it, it is Redis's own. Answers the standing as JSON; the grants are numbers, from which the caller makes them.
 */
export const LEDGER_SCRIPT = `${REDIS_NOW}
local MINUTE_SLOTS = { lengthMs = 5000, slots = 12, guard = 2 }
local DAY_SLOTS = { lengthMs = 3600000, slots = 24, guard = 1 }
local UNANSWERED_SLOT_MS = 10000
local LATE_MS = 60000
local GUARD_MS = 1000
local SAME_RESET_MS = 1500
local SET_BACK_MS = 10000
local FIRST_BACKOFF_MS = 5000
local LONGEST_BACKOFF_MS = 900000
local FIRST_BAN_MS = 60000
local LONGEST_BAN_MS = 3600000
local BAN_SUSPECTED_MS = 900000
local LATELY_MS = 86400000
local STANDS_MS = 60000
local LONGEST_PAUSE_MS = 366 * 86400000
local LOST_PROBE_MS = 1000
local DAY_RESERVE = 100
local REPEATED_WITHIN_MS = 60000
local FORGOTTEN_AFTER_MS = 26 * 3600000
local FORMAT = 1
local LEFT_ALONE_MS = 120000
local ASK_AGAIN_MS = 1000

local function slotOf(timeMs, lengthMs) return string.format('%.0f', math.floor(timeMs / lengthMs)) end

local function add(slots, slot, count) slots[slot] = (slots[slot] or 0) + count end

local function subtract(slots, slot)
  local count = slots[slot] or 0
  if count == 0 then return false end
  if count == 1 then slots[slot] = nil else slots[slot] = count - 1 end
  return true
end

local function sum(slots)
  local total = 0
  for _, count in pairs(slots) do total = total + count end
  return total
end

local function forgetSlots(starts, shape, nowMs)
  local oldest = math.floor(nowMs / shape.lengthMs) - shape.slots - shape.guard
  for slot in pairs(starts) do
    if tonumber(slot) <= oldest then starts[slot] = nil end
  end
end

local function firstFreeMs(starts, shape)
  local oldest = nil
  for slot in pairs(starts) do
    local number = tonumber(slot)
    if not oldest or number < oldest then oldest = number end
  end
  return oldest and (oldest + shape.slots + shape.guard) * shape.lengthMs or 0
end

local function lastFreeMs(starts, shape)
  local newest = nil
  for slot in pairs(starts) do
    local number = tonumber(slot)
    if not newest or number > newest then newest = number end
  end
  return newest and (newest + shape.slots + shape.guard) * shape.lengthMs or 0
end

local function forgetFewest(window) window.fewest, window.fewestLately, window.fewestSince = 0, 0, 0 end

local function newWindow(limit)
  local window = { mode = 'unknown', limit = limit, toldLimit = 0, ceiling = 0, cappedAt = 0, resetAtMs = 0, resetId = 0, toldAtMs = 0 }
  forgetFewest(window)
  return window
end

local function planText(plan) return string.format('%.0f/%.0f', plan.perMinute, plan.perDay) end

local function newLedgerState(generation, rules)
  return {
    format = FORMAT, replies = {}, generation = generation, started = 0, counted = 0,
    minute = newWindow(rules.plan.perMinute), day = newWindow(rules.plan.perDay), planKnown = rules.plan.known,
    minuteStarts = {}, dayStarts = {}, unanswered = {},
    configuredAtMs = {}, heeded = '', mustProbe = false, probeUntilMs = 0, pausedUntilMs = 0, pausedAtMs = 0, seenMs = 0, refusals = 0, banned = false, dayInDoubt = false, dayAtLeast = 0,
  }
end

-- More than any count, time or reset that a header can tell. Neither NaN nor infinity is less.
local MOST = 1e18
local function isText(value) return type(value) == 'string' end
local function isFlag(value) return type(value) == 'boolean' end
local function isNumber(value) return type(value) == 'number' and math.abs(value) <= MOST end
local function isWhole(value) return isNumber(value) and value == math.floor(value) end
local function isCount(value) return isWhole(value) and value >= 0 end
local function isMode(value) return value == 'told' or value == 'counted' or value == 'unknown' end

local function fits(value, checks)
  if type(value) ~= 'table' then return false end
  for name, check in pairs(checks) do
    if not check(value[name]) then return false end
  end
  return true
end

local function isTable(value, isEntry)
  if type(value) ~= 'table' then return false end
  for name, entry in pairs(value) do
    if type(name) ~= 'string' or not isEntry(name, entry) then return false end
  end
  return true
end

local function isBySlot(value)
  return isTable(value, function(slot, count)
    return #slot <= 16 and string.find(slot, '^%-?%d+$') ~= nil and isCount(count)
  end)
end

local function isByPlan(value)
  return isTable(value, function(_, atMs) return isNumber(atMs) end)
end

local REPLY = {
  id = isText, granted = isCount, firstStart = isCount, countedBefore = isCount, grantedAtMs = isNumber, probe = isFlag,
}
local function isReplies(value)
  return isTable(value, function(_, reply) return fits(reply, REPLY) end)
end

local WINDOW = {
  mode = isMode, limit = isCount, toldLimit = isCount, ceiling = isWhole, cappedAt = isWhole, resetAtMs = isNumber, resetId = isNumber,
  fewest = isWhole, fewestLately = isWhole, fewestSince = isWhole, toldAtMs = isNumber,
}
local function isWindow(value) return fits(value, WINDOW) end

local STATE = {
  format = isCount, replies = isReplies, generation = isText, started = isCount, counted = isCount,
  minute = isWindow, day = isWindow, planKnown = isFlag, configuredAtMs = isByPlan, heeded = isText,
  minuteStarts = isBySlot, dayStarts = isBySlot, unanswered = isBySlot, mustProbe = isFlag, probeUntilMs = isNumber,
  pausedUntilMs = isNumber, pausedAtMs = isNumber, seenMs = isNumber, refusals = isCount, banned = isFlag, dayInDoubt = isFlag, dayAtLeast = isWhole,
}

local function complete(value, fresh, names)
  if type(value) ~= 'table' then return end
  for _, name in ipairs(names) do
    if value[name] == nil then value[name] = fresh[name] end
  end
end

local function anew(fresh, kept)
  local function copy(names)
    for _, name in ipairs(names) do
      if STATE[name](kept[name]) then fresh[name] = kept[name] end
    end
  end
  local minute, day = kept.minute, kept.day
  if type(minute) == 'table' and type(day) == 'table' and isCount(minute.limit) and isCount(day.limit) then
    fresh.minute.limit, fresh.day.limit = minute.limit, day.limit
    copy({ 'planKnown', 'configuredAtMs', 'heeded', 'minuteStarts', 'dayStarts' })
  end
  copy({ 'pausedUntilMs', 'pausedAtMs', 'seenMs', 'refusals', 'banned' })
  fresh.mustProbe = true
  return fresh
end

-- The state, whether all that was kept could be used, and whether it is another version's and not to be touched.
local function readState(text, fresh, nowMs)
  local decoded, kept = pcall(cjson.decode, text)
  if not decoded or type(kept) ~= 'table' then kept = {} end
  local newer = isCount(kept.format) and kept.format > FORMAT
  if newer and isNumber(kept.seenMs) and nowMs - kept.seenMs < LEFT_ALONE_MS then return fresh, true, true end
  complete(kept, fresh, { 'format', 'replies', 'configuredAtMs', 'heeded', 'seenMs', 'dayInDoubt', 'dayAtLeast' })
  for _, name in ipairs({ 'minute', 'day' }) do
    complete(kept[name], fresh[name], { 'toldLimit', 'fewest', 'fewestLately', 'fewestSince', 'toldAtMs' })
  end
  if newer or not fits(kept, STATE) then return anew(fresh, kept), false, false end
  return kept, true, false
end

local function hasReset(window, nowMs) return window.mode == 'told' and nowMs >= window.resetAtMs end

local function moved(starts, backMs, lengthMs)
  local slots, result = math.floor(backMs / lengthMs), {}
  for slot, count in pairs(starts) do result[string.format('%.0f', tonumber(slot) - slots)] = count end
  return result
end

local function heedClock(state, nowMs)
  local backMs = state.seenMs - nowMs
  if backMs < SET_BACK_MS then
    state.seenMs = math.max(state.seenMs, nowMs)
    return
  end
  state.seenMs = nowMs
  for _, window in ipairs({ state.minute, state.day }) do
    window.resetAtMs = window.resetAtMs - backMs
    window.toldAtMs = window.toldAtMs - backMs
  end
  for _, name in ipairs({ 'probeUntilMs', 'pausedUntilMs', 'pausedAtMs' }) do state[name] = state[name] - backMs end
  state.minuteStarts = moved(state.minuteStarts, backMs, MINUTE_SLOTS.lengthMs)
  state.dayStarts = moved(state.dayStarts, backMs, DAY_SLOTS.lengthMs)
  state.unanswered = moved(state.unanswered, backMs, UNANSWERED_SLOT_MS)
end

local function allowedWhenCounted(name, limit)
  return name == 'day' and limit - math.floor(limit / DAY_RESERVE) or limit
end

local function leftOfMinute(state) return math.max(0, state.minute.limit - sum(state.minuteStarts)) end

local function leastOfDay(state, mode)
  if not state.planKnown then return math.min(math.max(0, state.dayAtLeast - state.started), state.day.limit) end
  return mode == 'unknown' and state.dayInDoubt and 1 or 0
end

local function windowStanding(state, name, nowMs)
  local window = state[name]
  local full = name == 'minute' and window.mode == 'unknown' and not state.planKnown and leftOfMinute(state) == 0
  local mode = full and 'counted' or window.mode
  local standing = { mode = mode, limit = window.limit, resetId = window.resetId }
  if mode == 'unknown' and name == 'minute' then
    standing.used, standing.remaining, standing.resetInMs = 0, window.limit, 0
  elseif mode == 'told' then
    standing.remaining = math.max(0, window.ceiling - state.started)
    standing.used = math.max(0, window.limit - standing.remaining)
    standing.resetInMs = math.max(0, window.resetAtMs - nowMs)
  else
    local starts = name == 'minute' and state.minuteStarts or state.dayStarts
    local shape = name == 'minute' and MINUTE_SLOTS or DAY_SLOTS
    local least = name == 'day' and leastOfDay(state, mode) or 0
    standing.used = sum(starts)
    standing.remaining = math.max(least, allowedWhenCounted(name, window.limit) - standing.used)
    standing.resetInMs = math.max(0, firstFreeMs(starts, shape) - nowMs)
  end
  return standing
end

local function toldLimit(window) return window.toldLimit == window.limit and window.limit or 0 end

local function heedConfigured(state, plan, nowMs)
  if not plan.known then return end
  local minute, day = state.minute, state.day
  local lately, text, heeded = state.configuredAtMs, planText(plan), state.heeded
  local isNew = nowMs - (lately[text] or -math.huge) >= LATELY_MS
  local stands = nowMs - (lately[heeded] or -math.huge) < STANDS_MS
  for other, atMs in pairs(lately) do
    if nowMs - atMs >= LATELY_MS then lately[other] = nil end
  end
  lately[text] = nowMs
  local contradicts = plan.perMinute < toldLimit(minute) or plan.perDay < toldLimit(day)
  if text == heeded or (not isNew and (stands or contradicts)) then return end
  state.heeded = text
  local wasOpen = windowStanding(state, 'day', nowMs).remaining > 0
  if day.mode == 'told' and day.limit ~= plan.perDay then day.mode = 'unknown' end
  minute.limit = plan.perMinute
  day.limit = plan.perDay
  state.planKnown = true
  state.dayInDoubt = wasOpen and sum(state.dayStarts) >= allowedWhenCounted('day', day.limit)
  if state.dayInDoubt then day.mode = 'unknown' end
end

local function passTime(state, rules, nowMs)
  local leaseMs = LATE_MS + rules.probeMs
  for slot, starts in pairs(state.unanswered) do
    if (tonumber(slot) + 1) * UNANSWERED_SLOT_MS + leaseMs <= nowMs then
      state.counted = state.counted + starts
      state.unanswered[slot] = nil
      forgetFewest(state.minute)
      forgetFewest(state.day)
    end
  end
  forgetSlots(state.minuteStarts, MINUTE_SLOTS, nowMs)
  forgetSlots(state.dayStarts, DAY_SLOTS, nowMs)
  if hasReset(state.minute, nowMs) then state.minute.mode = 'unknown' end
  if hasReset(state.day, nowMs) then
    state.day.mode = 'unknown'
    state.dayStarts = {}
  end
end

local function settle(state, given)
  if subtract(state.unanswered, slotOf(given.grantedAtMs, UNANSWERED_SLOT_MS)) then state.counted = state.counted + 1 end
end

local function refusedLately(state, nowMs)
  return state.refusals > 0 or nowMs - state.pausedAtMs <= BAN_SUSPECTED_MS
end

local function pause(state, forMs, nowMs)
  state.pausedUntilMs = math.max(state.pausedUntilMs, nowMs + forMs)
  state.mustProbe = true
  state.probeUntilMs = 0
  if state.minute.mode == 'told' then state.minute.mode = 'unknown' end
end

local function openUntold(state)
  state.probeUntilMs = 0
  state.mustProbe = false
  state.dayInDoubt = false
  if state.minute.mode == 'unknown' then state.minute.mode = 'counted' end
  if state.day.mode == 'unknown' then state.day.mode = 'counted' end
end

local function applyReturned(state, given)
  if given.generation ~= state.generation then return end
  settle(state, given)
  for _, window in ipairs({ state.minute, state.day }) do
    if window.mode == 'told' and given.start > window.cappedAt then window.ceiling = window.ceiling + 1 end
  end
  subtract(state.minuteStarts, slotOf(given.grantedAtMs, MINUTE_SLOTS.lengthMs))
  subtract(state.dayStarts, slotOf(given.grantedAtMs, DAY_SLOTS.lengthMs))
  if given.probe then state.probeUntilMs = 0 end
end

local function applyLost(state, given, nowMs)
  if given.generation ~= state.generation or not given.probe or state.refusals > 0 then return end
  state.probeUntilMs = math.min(state.probeUntilMs, nowMs + LOST_PROBE_MS)
end

local function noteFewest(state, window, given, remaining)
  window.fewest = math.min(window.fewest, remaining)
  window.fewestLately = math.min(window.fewestLately, remaining)
  if given.generation ~= state.generation or given.start <= window.fewestSince then return end
  window.fewest = window.fewestLately
  window.fewestLately = remaining
  window.fewestSince = state.started
end

local function applyReading(state, given, reading, nowMs)
  local window = state[reading.window]
  local other = reading.window == 'minute' and state.day or state.minute
  local limit = reading.limit or window.limit
  if state.planKnown and not reading.otherLimit and limit ~= window.limit and limit == other.limit then
    forgetFewest(window)
    return
  end
  local remaining = math.min(reading.remaining, limit)
  local unsure = not state.planKnown and not reading.otherLimit and reading.window == 'minute'
  local highest = state.started + (unsure and math.min(remaining, math.max(0, leftOfMinute(state) - 1)) or remaining)
  noteFewest(state, window, given, remaining)
  if given.generation ~= state.generation then
    if window.mode ~= 'told' then return end
    window.ceiling = window.ceiling - 1
    if highest > window.ceiling then return end
    window.ceiling = highest
    window.cappedAt = state.started
    return
  end
  if unsure then state.dayAtLeast = given.countedBefore + 1 + remaining end
  local told = window.mode == 'told'
  if told and reading.resetId < window.resetId - SAME_RESET_MS then return end
  local same = told and reading.resetId <= window.resetId + SAME_RESET_MS
  local allowed = math.max(given.countedBefore + 1 + remaining, state.counted + window.fewest)
  local ceiling = same and math.max(window.ceiling, allowed) or allowed
  window.mode = 'told'
  window.cappedAt = ceiling >= highest and state.started or (same and window.cappedAt or 0)
  window.ceiling = math.min(ceiling, highest)
  window.resetAtMs = nowMs + reading.resetInMs + GUARD_MS
  window.resetId = reading.resetId
  window.toldAtMs = math.max(window.toldAtMs, nowMs - (reading.agoMs or 0))
  if reading.limit then window.toldLimit = reading.limit end
  if not reading.otherLimit then return end
  local assumed = other.mode ~= 'told' or not state.planKnown or other.limit == limit
  if assumed then other.limit, other.toldLimit = reading.otherLimit, reading.otherLimit end
  window.limit = limit
  state.planKnown = true
end

local function applyReadings(state, given, readings, nowMs)
  local toldOf = {}
  for _, reading in ipairs(readings) do
    applyReading(state, given, reading, nowMs)
    toldOf[reading.window] = true
  end
  for _, name in ipairs({ 'minute', 'day' }) do
    if not toldOf[name] then forgetFewest(state[name]) end
  end
end

local function applyAnswered(state, given, readings, nowMs)
  if given.generation == state.generation then settle(state, given) end
  applyReadings(state, given, readings, nowMs)
  if given.generation ~= state.generation or given.grantedAtMs < state.pausedUntilMs then return end
  state.refusals = 0
  state.banned = false
  if given.probe then openUntold(state) end
end

local function applyRefused(state, report, nowMs)
  local given, refusal = report.grant, report.refusal
  if given.generation == state.generation then settle(state, given) end
  applyReadings(state, given, report.readings, nowMs)
  if refusal.ban and not refusedLately(state, nowMs) then
    if given.probe and given.generation == state.generation then openUntold(state) end
    return
  end
  state.dayInDoubt = false
  local pauseMs = refusal.retryAfterMs
  for _, reading in ipairs(report.readings) do
    if reading.remaining == 0 then pauseMs = math.max(pauseMs, reading.resetInMs) end
  end
  local before = nowMs < state.pausedUntilMs
  if given.generation == state.generation then before = given.grantedAtMs <= state.pausedAtMs end
  local echo = state.refusals > 0 and before
  if not echo then
    state.refusals = state.refusals + 1
    state.pausedAtMs = nowMs
    local first = refusal.ban and FIRST_BAN_MS or FIRST_BACKOFF_MS
    local longest = refusal.ban and LONGEST_BAN_MS or LONGEST_BACKOFF_MS
    local backoffMs = math.min(first * 2 ^ (state.refusals - 1), longest)
    pauseMs = math.max(pauseMs, backoffMs + math.floor(backoffMs * 0.25 * refusal.jitter))
  end
  pause(state, math.min(pauseMs, LONGEST_PAUSE_MS) + GUARD_MS, nowMs)
  state.banned = state.banned or refusal.ban
end

local function slotFreeIn(freeInMs, shape, nowMs)
  local current = slotOf(nowMs, shape.lengthMs)
  if not freeInMs then return current end
  local slot = math.ceil((nowMs + freeInMs - GUARD_MS) / shape.lengthMs) - shape.slots - shape.guard
  return string.format('%.0f', math.min(tonumber(current), slot))
end

local function addMissing(starts, slot, used)
  local missing = used - sum(starts)
  if missing > 0 then add(starts, slot, missing) end
end

local function adoptMinute(state, memory, nowMs)
  local minute, started, minuteTold = state.minute, state.started, memory.minuteTold
  local starts = memory.calls + memory.underWay
  local told = minute.mode == 'told'
  local last = not told or not minuteTold or minuteTold.id >= minute.resetId - SAME_RESET_MS
  if minuteTold and minuteTold.remaining == 0 and minuteTold.inMs > 0 and last then
    minute.ceiling = told and math.min(minute.ceiling, started) or started
    minute.mode, minute.cappedAt = 'told', started + starts
    minute.resetAtMs, minute.resetId = nowMs + minuteTold.inMs, minuteTold.id
    return
  end
  if told and minute.ceiling <= started then return end
  local overtaken = memory.awayForMs and minute.toldAtMs < nowMs - memory.awayForMs
  if told and (starts > 0 or overtaken) then minute.mode = 'unknown' end
end

local function adoptDay(state, memory, knowsBefore, nowMs)
  local day, started, dayReset = state.day, state.started, memory.dayReset
  if not dayReset or dayReset.inMs <= 0 then return end
  if day.mode ~= 'told' then
    day.mode, day.cappedAt = 'told', started
    day.ceiling = started + math.max(0, day.limit - sum(state.dayStarts))
    day.resetAtMs, day.resetId = nowMs + dayReset.inMs, dayReset.id
    return
  end
  local ceiling = started + math.max(0, day.limit - memory.dayUsed)
  if knowsBefore or dayReset.id < day.resetId - SAME_RESET_MS or ceiling >= day.ceiling then return end
  day.ceiling, day.cappedAt = ceiling, started
end

local function knows(state, knownOf)
  return knownOf and knownOf.generation == state.generation and knownOf.started <= state.started
end

local function applyAdopted(state, memory, nowMs)
  if memory.refusedLately and not refusedLately(state, nowMs) then state.pausedAtMs = nowMs end
  if memory.plan and not state.planKnown then
    state.minute.limit = memory.plan.perMinute
    state.day.limit = memory.plan.perDay
    state.planKnown = true
  end
  -- Replicas of an older version do not tell, and nor do they of the minute.
  local knowsBefore = knows(state, memory.knownOf)
  local starts = memory.calls + memory.underWay
  adoptMinute(state, memory, nowMs)
  state.started = state.started + starts
  state.counted = state.counted + memory.calls
  forgetFewest(state.minute)
  forgetFewest(state.day)
  if starts > 0 then
    add(state.minuteStarts, slotOf(nowMs, MINUTE_SLOTS.lengthMs), starts)
    add(state.dayStarts, slotOf(nowMs, DAY_SLOTS.lengthMs), starts)
  end
  if memory.underWay > 0 then add(state.unanswered, slotOf(nowMs, UNANSWERED_SLOT_MS), memory.underWay) end
  if not knowsBefore then
    addMissing(state.minuteStarts, slotOf(nowMs, MINUTE_SLOTS.lengthMs), memory.minuteUsed or 0)
    addMissing(state.dayStarts, slotFreeIn(memory.dayFreeInMs, DAY_SLOTS, nowMs), memory.dayUsed)
  end
  adoptDay(state, memory, knowsBefore, nowMs)
  if memory.pausedForMs > 0 then pause(state, memory.pausedForMs, nowMs) end
end

local function applyReport(state, report, nowMs)
  if report.kind == 'returned' then applyReturned(state, report.grant)
  elseif report.kind == 'lost' then applyLost(state, report.grant, nowMs)
  elseif report.kind == 'answered' then applyAnswered(state, report.grant, report.readings, nowMs)
  elseif report.kind == 'refused' then applyRefused(state, report, nowMs)
  elseif report.kind == 'adopted' then applyAdopted(state, report, nowMs)
  end
end

local function usedUp(name, window)
  local shape = name == 'minute' and MINUTE_SLOTS or DAY_SLOTS
  local waitMs = window.resetInMs > 0 and window.resetInMs or shape.lengthMs * shape.slots
  return { starts = 0, probe = false, closed = name, waitMs = waitMs }
end

local function grantable(state, nowMs)
  if nowMs < state.pausedUntilMs then
    return { starts = 0, probe = false, closed = 'paused', waitMs = state.pausedUntilMs - nowMs }
  end
  local day = windowStanding(state, 'day', nowMs)
  local minute = windowStanding(state, 'minute', nowMs)
  if day.remaining <= 0 then return usedUp('day', day) end
  if minute.remaining <= 0 then return usedUp('minute', minute) end
  if state.mustProbe or minute.mode == 'unknown' or day.mode == 'unknown' then
    if nowMs < state.probeUntilMs then
      return { starts = 0, probe = false, closed = 'probing', waitMs = state.probeUntilMs - nowMs }
    end
    return { starts = 1, probe = true, waitMs = 0 }
  end
  local name, tightest = 'minute', minute
  if day.remaining < minute.remaining then name, tightest = 'day', day end
  return { starts = tightest.remaining, probe = false, closed = name, waitMs = tightest.resetInMs }
end

local request = cjson.decode(ARGV[1])
local rules, wanted = request.rules, request.wanted
local nowMs = tonumber(ARGV[2]) or redisNowMs()
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' then
  -- What is no text at all is no state either.
  if not string.find(stored.err, '^%-?WRONGTYPE') then return stored end
  stored = ''
end
local state, whole, leftAlone = newLedgerState(request.generation, rules), true, false
if stored then state, whole, leftAlone = readState(stored, state, nowMs) end

heedClock(state, nowMs)
passTime(state, rules, nowMs)
heedConfigured(state, rules.plan, nowMs)
if leftAlone then state.pausedUntilMs = nowMs + ASK_AGAIN_MS end
local reply = state.replies[request.replica]
if not reply or reply.id ~= request.id then
  for _, report in ipairs(request.reports) do applyReport(state, report, nowMs) end
  local room = grantable(state, nowMs)
  local granted = math.max(0, math.min(wanted, room.starts))
  reply = {
    id = request.id, granted = granted, firstStart = state.started + 1, countedBefore = state.counted,
    grantedAtMs = nowMs, probe = room.probe,
  }
  if granted > 0 then
    state.started = state.started + granted
    add(state.minuteStarts, slotOf(nowMs, MINUTE_SLOTS.lengthMs), granted)
    add(state.dayStarts, slotOf(nowMs, DAY_SLOTS.lengthMs), granted)
    add(state.unanswered, slotOf(nowMs, UNANSWERED_SLOT_MS), granted)
    if room.probe then state.probeUntilMs = nowMs + rules.probeMs end
  end
  for replica, last in pairs(state.replies) do
    if last.grantedAtMs + REPEATED_WITHIN_MS < nowMs then state.replies[replica] = nil end
  end
  state.replies[request.replica] = reply
end
local room = grantable(state, nowMs)
local short = wanted > reply.granted

-- Whoever only looks leaves nothing behind: keys that somebody made up take no room.
local keeps = not leftAlone and (stored or #request.reports > 0 or reply.granted > 0)
if keeps then
  local encoded, text = pcall(cjson.encode, state)
  if not encoded then
    -- What is not known here and was left as it is has a number in it that JSON does not have.
    state, whole = anew(newLedgerState(request.generation, rules), state), false
    text = cjson.encode(state)
  end
  local pausedForMs = math.min(math.max(0, state.pausedUntilMs - nowMs), LONGEST_PAUSE_MS)
  redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', pausedForMs + FORGOTTEN_AFTER_MS))
end

return cjson.encode({
  granted = reply.granted, firstStart = reply.firstStart, countedBefore = reply.countedBefore,
  grantedAtMs = reply.grantedAtMs, probe = reply.probe,
  closed = short and room.closed or nil,
  waitMs = short and room.waitMs or 0,
  generation = keeps and state.generation or '',
  started = state.started,
  minute = windowStanding(state, 'minute', nowMs),
  day = windowStanding(state, 'day', nowMs),
  dayFreeInMs = math.max(0, lastFreeMs(state.dayStarts, DAY_SLOTS) - nowMs),
  pausedForMs = math.max(0, state.pausedUntilMs - nowMs),
  banned = state.banned,
  refusedLately = refusedLately(state, nowMs),
  planKnown = state.planKnown,
  whole = whole, leftAlone = leftAlone,
})
`;
