-- Aggregates a Queue's status over all members: Open while a member's is Open; sums of numbers.

local kube = require("kube")

local COUNTS = { "completed", "inqueue", "pending", "running", "unknown" }

-- A job runs in one member: one Open queue is enough, and a member that closes its queue must not
-- stop the others. Closing comes before Closed, since jobs still run there.
local PRECEDENCE = { "Open", "Closing", "Closed", "Unknown" }

local function add_quantities(sum, quantities)
  for name, quantity in pairs(quantities or {}) do
    sum[name] = kube.resourceAdd(sum[name] or "0", tostring(quantity))
  end
end

local function state_of(seen)
  for _, state in ipairs(PRECEDENCE) do
    if seen[state] then
      return state
    end
  end
  return nil
end

local function sorted_keys(set)
  local keys = {}
  for key in pairs(set) do
    table.insert(keys, key)
  end
  table.sort(keys)
  return keys
end

-- Only fields with a value: the API server would get an empty Lua table as an empty list.
local function filled(content)
  if next(content) == nil then
    return nil
  end
  return content
end

function AggregateStatus(desiredObj, statusItems)
  local states, nodes, allocated, reserved = {}, {}, {}, {}
  local status = {}
  for _, field in ipairs(COUNTS) do
    status[field] = 0
  end
  local reported = false
  for _, item in ipairs(statusItems or {}) do
    local member = item.status
    if member ~= nil then
      reported = true
      for _, field in ipairs(COUNTS) do
        status[field] = status[field] + (member[field] or 0)
      end
      if member.state ~= nil and member.state ~= "" then
        states[member.state] = true
      end
      add_quantities(allocated, member.allocated)
      local reservation = member.reservation or {}
      add_quantities(reserved, reservation.resource)
      for _, node in ipairs(reservation.nodes or {}) do
        nodes[node] = true
      end
    end
  end
  if not reported then
    return desiredObj
  end
  status.state = state_of(states)
  status.allocated = filled(allocated)
  status.reservation = filled({
    nodes = filled(sorted_keys(nodes)),
    resource = filled(reserved),
  })
  desiredObj.status = status
  return desiredObj
end
