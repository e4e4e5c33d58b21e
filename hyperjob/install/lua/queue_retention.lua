-- What a member decides of a queue and an update must leave alone: its webhook's defaults, and
-- where the queue hangs in that member's own hierarchy. What the control plane says always wins,
-- and what it may take away again, capability for one, is not kept.

local function is_absent(value)
  return value == nil or value == "" or value == 0
end

function Retain(desiredObj, observedObj)
  local observed = observedObj.spec
  if observed == nil then
    return desiredObj
  end
  if desiredObj.spec == nil then
    desiredObj.spec = {}
  end
  for _, field in ipairs({ "dequeueStrategy", "parent", "reclaimable", "weight" }) do
    if is_absent(desiredObj.spec[field]) then
      desiredObj.spec[field] = observed[field]
    end
  end
  return desiredObj
end
