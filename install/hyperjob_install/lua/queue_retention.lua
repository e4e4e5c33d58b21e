-- Karmada's update of a Queue retains the fields that the member sets itself: the defaults of its
-- webhook, and the parent in the member's own hierarchy. Fields of the control plane win. Fields
-- that the control plane may remove, such as capability, are not retained.

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
