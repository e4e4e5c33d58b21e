-- Lists the objects that Karmada copies to the cluster of a vcjob: ConfigMaps, Secrets,
-- ServiceAccounts, PersistentVolumeClaims and resource claims of its pods, and existing claims that
-- the job mounts.

local kube = require("kube")

local function is_set(text)
  return text ~= nil and text ~= ""
end

function GetDependencies(obj)
  local found = {}
  local seen = {}
  local function add(reference)
    local key = table.concat({
      reference.apiVersion or "",
      reference.kind or "",
      reference.namespace or "",
      reference.name or "",
    }, "|")
    if not seen[key] then
      seen[key] = true
      table.insert(found, reference)
    end
  end

  local namespace = obj.metadata.namespace
  local spec = obj.spec or {}
  for _, task in ipairs(spec.tasks or {}) do
    -- A template without dependencies has nil, not an empty table.
    local references = nil
    local pod = {}
    if task.template ~= nil then
      references = kube.getPodDependencies(task.template, namespace)
      pod = task.template.spec or {}
    end
    for _, reference in ipairs(references or {}) do
      add(reference)
    end
    for _, claim in ipairs(pod.resourceClaims or {}) do
      -- Karmada looks for none of these in a pod.
      local kind = "ResourceClaimTemplate"
      local name = claim.resourceClaimTemplateName
      if not is_set(name) then
        kind = "ResourceClaim"
        name = claim.resourceClaimName
      end
      if is_set(name) then
        add({
          apiVersion = "resource.k8s.io/v1",
          kind = kind,
          namespace = namespace,
          name = name,
        })
      end
    end
  end
  for _, volume in ipairs(spec.volumes or {}) do
    if is_set(volume.volumeClaimName) and volume.volumeClaim == nil then
      add({
        apiVersion = "v1",
        kind = "PersistentVolumeClaim",
        namespace = namespace,
        name = volume.volumeClaimName,
      })
    end
  end
  return found
end
