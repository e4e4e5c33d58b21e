-- Karmada's update of a vcjob retains the fields that Volcano sets in the member.
--
-- Volcano sets them once, when the job is created in the member, and refuses an update without
-- them. Fields of the control plane win: an update that scales the job there scales it in the
-- member. The script identifies tasks by name and volumes by mount path, not by position.

local function is_absent(value)
  return value == nil or value == "" or value == 0
end

local function keep(desired, observed, fields)
  for _, field in ipairs(fields) do
    if is_absent(desired[field]) and not is_absent(observed[field]) then
      desired[field] = observed[field]
    end
  end
end

local function index(list, field)
  local found = {}
  for _, item in ipairs(list or {}) do
    if item[field] ~= nil then
      found[item[field]] = item
    end
  end
  return found
end

local function replicas_of(tasks)
  local sum = 0
  for _, task in ipairs(tasks) do
    sum = sum + (task.replicas or 0)
  end
  return sum
end

local function available_of(tasks)
  local sum = 0
  for _, task in ipairs(tasks) do
    sum = sum + (task.minAvailable or task.replicas or 0)
  end
  return sum
end

local function keep_task(desired, observed)
  keep(desired, observed, { "maxRetry" })
  if desired.minAvailable == nil and observed.minAvailable ~= nil then
    -- A minAvailable that equals the number of pods follows the number when the job is scaled.
    if observed.minAvailable == (observed.replicas or 0) then
      desired.minAvailable = desired.replicas or 0
    else
      desired.minAvailable = math.min(observed.minAvailable, desired.replicas or 0)
    end
  end
  local pod = (desired.template or {}).spec
  local running = (observed.template or {}).spec
  if pod ~= nil and running ~= nil and pod.hostNetwork then
    keep(pod, running, { "dnsPolicy" })
  end
end

local function keep_tasks(desired, observed)
  local running = index(observed.tasks, "name")
  for position, task in ipairs(desired.tasks or {}) do
    if is_absent(task.name) and running["default" .. (position - 1)] ~= nil then
      task.name = "default" .. (position - 1)
    end
    if not is_absent(task.name) and running[task.name] ~= nil then
      keep_task(task, running[task.name])
    end
  end
end

local function keep_min_available(desired, observed)
  if not is_absent(desired.minAvailable) or is_absent(observed.minAvailable) then
    return
  end
  local tasks = desired.tasks or {}
  if observed.minAvailable == available_of(observed.tasks or {}) then
    desired.minAvailable = available_of(tasks)
  else
    desired.minAvailable = math.min(observed.minAvailable, replicas_of(tasks))
  end
end

local function keep_claims(desired, observed)
  local mounted = index(observed.volumes, "mountPath")
  for _, volume in ipairs(desired.volumes or {}) do
    local there = mounted[volume.mountPath or ""]
    if there ~= nil then
      keep(volume, there, { "volumeClaimName" })
    end
  end
end

-- Volcano adds the plugins that other plugins need, such as svc for pytorch.
local function keep_plugins(desired, observed)
  if desired.plugins == nil then
    return
  end
  for name, arguments in pairs(observed.plugins or {}) do
    if desired.plugins[name] == nil then
      desired.plugins[name] = arguments
    end
  end
end

function Retain(desiredObj, observedObj)
  local desired = desiredObj.spec
  local observed = observedObj.spec
  if desired == nil or observed == nil then
    return desiredObj
  end
  keep(desired, observed, { "schedulerName", "queue", "maxRetry" })
  keep_tasks(desired, observed)
  keep_min_available(desired, observed)
  keep_claims(desired, observed)
  keep_plugins(desired, observed)
  return desiredObj
end
