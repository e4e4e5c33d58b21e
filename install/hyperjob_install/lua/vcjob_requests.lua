-- Returns the requests of a vcjob, over all its tasks, as a number of equal replicas. They are those
-- of the pods that start together: minAvailable of each task, then of the vcjob.
--
-- Volcano Global's quota and Karmada's own multiply the two results. The product must be exact for
-- devices, since a job may fill the quota of its queue, and must not exceed the requests for other
-- resources: with an average that is rounded up, such a job would never be admitted. The number of
-- replicas is the number of pods if it divides the devices evenly, else the next smaller number
-- that does; 1 always does.
--
-- Karmada calls GetComponents in place of GetReplicas if MultiplePodTemplatesScheduling is on. The
-- one component has both results: its name has no limit of a task's, and the webhook copies it
-- into the ResourceBinding, where Volcano Global reads replicas alone.

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

local function least(task)
  local replicas = task.replicas or 0
  if task.partitionPolicy ~= nil then
    return replicas
  end
  return math.max(0, math.min(task.minAvailable or replicas, replicas))
end

-- Returns the pods of each task that start together.
local function together(spec)
  local tasks = spec.tasks or {}
  local sum = 0
  for _, task in ipairs(tasks) do
    sum = sum + least(task)
  end
  local wanted = sum
  if (spec.minAvailable or 0) > 0 then
    wanted = spec.minAvailable
  end
  local found = {}
  local more = wanted
  if wanted >= sum then
    more = wanted - sum
  end
  for index, task in ipairs(tasks) do
    local start, most = least(task), task.replicas or 0
    if wanted < sum then
      start, most = 0, least(task)
    end
    local added = math.min(most - start, more)
    more = more - added
    found[index] = start + added
  end
  return found
end

-- Returns the resources that the controller has marked: parts of shared devices that no cluster
-- reports. Volcano Global would let no queue use them, and Volcano's scheduler judges them.
local function uncounted(obj)
  local found = {}
  local marks = (obj.metadata or {}).annotations or {}
  for name in string.gmatch(marks["training.volcano.sh/uncounted"] or "", "[^,]+") do
    found[name] = true
  end
  return found
end

local function requests_of(obj)
  local pods = 0
  local left_out = uncounted(obj)
  local totals = {}
  local numbers = together(obj.spec or {})
  for index, task in ipairs((obj.spec or {}).tasks or {}) do
    local replicas = numbers[index]
    pods = pods + replicas
    local pod = nil
    if task.template ~= nil and replicas > 0 then
      pod = kube.accuratePodRequirements(task.template)
    end
    for name, quantity in pairs((pod or {}).resourceRequest or {}) do
      local amount = kube.getResourceQuantity(tostring(quantity)) * scale(name)
      if not left_out[name] then
        totals[name] = (totals[name] or 0) + replicas * math.floor(amount + 0.5)
      end
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

function GetReplicas(obj)
  return requests_of(obj)
end

function GetComponents(obj)
  local replicas, requirements = requests_of(obj)
  if replicas == 0 then
    return nil
  end
  return { { name = "vcjob", replicas = replicas, replicaRequirements = requirements } }
end
