-- What a vcjob asks for, over all its tasks, as a number of equal replicas.
--
-- Volcano Global's quota and Karmada's own multiply the two results, so the product must be what
-- the job takes: exact for devices, for which quotas are set and filled to the last one, and never
-- above it for the rest. An average that is rounded up would keep out for ever a job that fills
-- its queue. So there are as many replicas as pods where the devices divide evenly, and otherwise
-- the next smaller number by which they do; one replica always does.

local kube = require("kube")

local ended = { Aborted = true, Completed = true, Failed = true, Terminated = true }

local function is_device(name)
  return string.find(name, "/", 1, true) ~= nil
end

-- CPU counts in thousandths, everything else in whole units.
local function scale(name)
  if name == "cpu" then
    return 1000
  end
  return 1
end

local function divides(count, totals)
  for name, total in pairs(totals) do
    if is_device(name) and total % count ~= 0 then
      return false
    end
  end
  return true
end

function GetReplicas(obj)
  local pods = 0
  local totals = {}
  for _, task in ipairs((obj.spec or {}).tasks or {}) do
    local replicas = task.replicas or 0
    pods = pods + replicas
    local pod = nil
    if task.template ~= nil and replicas > 0 then
      pod = kube.accuratePodRequirements(task.template)
    end
    for name, quantity in pairs((pod or {}).resourceRequest or {}) do
      local amount = kube.getResourceQuantity(tostring(quantity)) * scale(name)
      totals[name] = (totals[name] or 0) + replicas * math.floor(amount + 0.5)
    end
  end
  if pods == 0 then
    return 0, nil
  end
  if ended[((obj.status or {}).state or {}).phase] then
    return pods, nil
  end

  local count = pods
  while not divides(count, totals) do
    count = count - 1
  end
  local request = {}
  for name, total in pairs(totals) do
    if total > 0 then
      local share = string.format("%.0f", math.floor(total / count))
      if name == "cpu" then
        share = share .. "m"
      end
      request[name] = share
    end
  end
  return count, { resourceRequest = request }
end
