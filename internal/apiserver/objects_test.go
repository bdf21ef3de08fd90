package apiserver_test

// objects are what is sent, and what an API server makes of it: as
// k8s.io/kubernetes 1.36 does, whose scheme has filled in the same.
var objects = []struct{ name, version, kind, in, want string }{
	{"plain", "v1", "Namespace", `metadata: {name: a}`, `metadata: {name: a, labels: {kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}`},
	{"with another label", "v1", "Namespace", `metadata: {name: a, labels: {kubernetes.io/metadata.name: b, c: d}}`,
		`metadata: {name: a, labels: {kubernetes.io/metadata.name: a, c: d}}, spec: {finalizers: [kubernetes]}`},
	{"without a name", "v1", "Namespace", `metadata: {generateName: a-}`, `metadata: {generateName: a-}, spec: {finalizers: [kubernetes]}`},

	{"plain", "v1", "Secret", `data: {}`, `data: {}, type: Opaque`},
	{"without a type", "v1", "Secret", `type: ""`, `type: Opaque`},
	{"of a type", "v1", "Secret", `type: kubernetes.io/tls`, `type: kubernetes.io/tls`},

	{"plain", "v1", "Service", `spec: {ports: [{port: 80}]}`,
		`spec: {ports: [{port: 80, protocol: TCP, targetPort: 80}], sessionAffinity: None, type: ClusterIP, internalTrafficPolicy: Cluster}`},
	{"target ports", "v1", "Service", `spec: {ports: [{port: 80, targetPort: web}, {port: 81, targetPort: 0, protocol: UDP}, {port: 82, targetPort: ""}, {port: 83, targetPort: 8083}]}`,
		`spec: {ports: [{port: 80, targetPort: web, protocol: TCP}, {port: 81, targetPort: 81, protocol: UDP}, {port: 82, targetPort: 82, protocol: TCP}, {port: 83, targetPort: 8083, protocol: TCP}],
  sessionAffinity: None, type: ClusterIP, internalTrafficPolicy: Cluster}`},
	{"affine", "v1", "Service", `spec: {sessionAffinity: ClientIP}`,
		`spec: {sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}, type: ClusterIP, internalTrafficPolicy: Cluster}`},
	{"affine for a time", "v1", "Service", `spec: {sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}}`,
		`spec: {sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}, type: ClusterIP, internalTrafficPolicy: Cluster}`},
	{"not affine", "v1", "Service", `spec: {sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}}`, `spec: {sessionAffinity: None, type: ClusterIP, internalTrafficPolicy: Cluster}`},
	{"of nodes", "v1", "Service", `spec: {type: NodePort}`, `spec: {type: NodePort, sessionAffinity: None, internalTrafficPolicy: Cluster, externalTrafficPolicy: Cluster}`},
	{"of a load balancer", "v1", "Service", `spec: {type: LoadBalancer, externalTrafficPolicy: Local}`,
		`spec: {type: LoadBalancer, sessionAffinity: None, internalTrafficPolicy: Cluster, externalTrafficPolicy: Local, allocateLoadBalancerNodePorts: true}`},
	{"with external addresses", "v1", "Service", `spec: {externalIPs: [10.0.0.1]}`,
		`spec: {externalIPs: [10.0.0.1], type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, externalTrafficPolicy: Cluster}`},
	{"elsewhere", "v1", "Service", `spec: {type: ExternalName, externalName: a.example}`, `spec: {type: ExternalName, externalName: a.example, sessionAffinity: None}`},

	{"plain", "v1", "PersistentVolumeClaim", `spec: {}`, `spec: {volumeMode: Filesystem}`},
	{"plain", "v1", "PersistentVolume", `spec: {}`, `spec: {volumeMode: Filesystem, persistentVolumeReclaimPolicy: Retain}`},
	{"as blocks", "v1", "PersistentVolume", `spec: {volumeMode: Block, persistentVolumeReclaimPolicy: Delete}`, `spec: {volumeMode: Block, persistentVolumeReclaimPolicy: Delete}`},

	{"plain", "v1", "Pod", `spec: {hostNetwork: true, containers: [{name: a, image: a/b, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 82}], resources: {limits: {cpu: 1, memory: 2Gi}, requests: {cpu: 100m}}}]}`,
		`spec: {hostNetwork: true, containers: [{name: a, image: a/b, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}, {containerPort: 81, hostPort: 82, protocol: TCP}],
    resources: {limits: {cpu: 1, memory: 2Gi}, requests: {cpu: 100m, memory: 2Gi}}, imagePullPolicy: Always, ` + containerDefaults + `}],
  enableServiceLinks: true, ` + podDefaults + `}`},

	{"plain", "apps/v1", "Deployment", `spec: {}`,
		`spec: {replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600, strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 25%, maxSurge: 25%}}}`},
	{"that is told", "apps/v1", "Deployment", `spec: {replicas: 0, revisionHistoryLimit: 0, strategy: {rollingUpdate: {maxUnavailable: 0}}}`,
		`spec: {replicas: 0, revisionHistoryLimit: 0, progressDeadlineSeconds: 600, strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 25%}}}`},
	{"that is replaced", "apps/v1", "Deployment", `spec: {strategy: {type: Recreate}}`,
		`spec: {replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600, strategy: {type: Recreate}}`},
	{"plain", "apps/v1", "ReplicaSet", `spec: {}`, `spec: {replicas: 1}`},
	{"plain", "apps/v1", "DaemonSet", `spec: {}`,
		`spec: {revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}}`},
	{"on deletion", "apps/v1", "DaemonSet", `spec: {updateStrategy: {type: OnDelete}}`, `spec: {revisionHistoryLimit: 10, updateStrategy: {type: OnDelete}}`},
	{"many at a time", "apps/v1", "DaemonSet", `spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%}}}`,
		`spec: {revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%, maxSurge: 0}}}`},
	{"plain", "apps/v1", "StatefulSet", `spec: {volumeClaimTemplates: [{metadata: {name: v}, spec: {}}]}`,
		`spec: {replicas: 1, revisionHistoryLimit: 10, podManagementPolicy: OrderedReady, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}},
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain},
  volumeClaimTemplates: [{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: v}, spec: {volumeMode: Filesystem}, status: {phase: Pending}}]}`},
	{"with a strategy only", "apps/v1", "StatefulSet", `spec: {updateStrategy: {type: RollingUpdate}, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}`,
		`spec: {replicas: 1, revisionHistoryLimit: 10, podManagementPolicy: OrderedReady, updateStrategy: {type: RollingUpdate}, persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Delete}}`},

	{"plain", "apiregistration.k8s.io/v1", "APIService", `spec: {service: {name: a, namespace: b}}`, `spec: {service: {name: a, namespace: b, port: 443}}`},
	{"of the server itself", "apiregistration.k8s.io/v1", "APIService", `spec: {group: a}`, `spec: {group: a}`},
	{"plain", "autoscaling/v2", "HorizontalPodAutoscaler", `spec: {maxReplicas: 3, metrics: [{}]}`, `spec: {minReplicas: 1, maxReplicas: 3, metrics: [{}]}`},
	{"with parameters", "networking.k8s.io/v1", "IngressClass", `spec: {controller: a, parameters: {kind: b, name: c}}`, `spec: {controller: a, parameters: {kind: b, name: c, scope: Cluster}}`},

	{"plain", "batch/v1", "Job", `spec: {}`, `spec: {completions: 1, parallelism: 1, backoffLimit: 6, ` + jobDefaults + `, podReplacementPolicy: TerminatingOrFailed}`},
	{"with workers", "batch/v1", "Job", `spec: {parallelism: 3}`, `spec: {parallelism: 3, backoffLimit: 6, ` + jobDefaults + `, podReplacementPolicy: TerminatingOrFailed}`},
	{"with completions", "batch/v1", "Job", `spec: {completions: 3}`, `spec: {completions: 3, parallelism: 1, backoffLimit: 6, ` + jobDefaults + `, podReplacementPolicy: TerminatingOrFailed}`},
	{"with a limit for each", "batch/v1", "Job", `spec: {backoffLimitPerIndex: 1}`,
		`spec: {completions: 1, parallelism: 1, backoffLimitPerIndex: 1, backoffLimit: 2147483647, ` + jobDefaults + `, podReplacementPolicy: TerminatingOrFailed}`},
	{"with a policy of failures", "batch/v1", "Job", `spec: {podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}}`,
		`spec: {completions: 1, parallelism: 1, backoffLimit: 6, ` + jobDefaults + `, podReplacementPolicy: Failed,
  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: "True"}]}]}}`},
	{"plain", "batch/v1", "CronJob", `spec: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never}}}}}`,
		`spec: {concurrencyPolicy: Allow, suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, ` + podOthers + `}}}}}`},
	{"without a history", "batch/v1", "CronJob", `spec: {successfulJobsHistoryLimit: 0, concurrencyPolicy: Forbid}`,
		`spec: {concurrencyPolicy: Forbid, suspend: false, successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 1}`},

	{"plain", "rbac.authorization.k8s.io/v1", "RoleBinding", `roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: Group, name: g, apiGroup: ""}, {kind: ServiceAccount, name: s, apiGroup: ""}, {kind: X, name: x}]`,
		`roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: u, apiGroup: rbac.authorization.k8s.io}, {kind: Group, name: g, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: s}, {kind: X, name: x}]`},
	{"plain", "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", `roleRef: {kind: ClusterRole, name: r, apiGroup: ""}`, `roleRef: {kind: ClusterRole, name: r, apiGroup: rbac.authorization.k8s.io}`},

	{"plain", "scheduling.k8s.io/v1", "PriorityClass", `value: 1`, `value: 1, preemptionPolicy: PreemptLowerPriority`},
	{"plain", "storage.k8s.io/v1", "StorageClass", `provisioner: p`, `provisioner: p, reclaimPolicy: Delete, volumeBindingMode: Immediate`},
	{"plain", "storage.k8s.io/v1", "CSIDriver", `spec: {attachRequired: false}`,
		`spec: {attachRequired: false, podInfoOnMount: false, storageCapacity: false, fsGroupPolicy: ReadWriteOnceWithFSType, requiresRepublish: false, seLinuxMount: false, volumeLifecycleModes: [Persistent]}`},
	{"plain", "networking.k8s.io/v1", "NetworkPolicy", `spec: {ingress: [{ports: [{port: 80}]}]}`, `spec: {ingress: [{ports: [{port: 80, protocol: TCP}]}], policyTypes: [Ingress]}`},
	{"outwards", "networking.k8s.io/v1", "NetworkPolicy", `spec: {egress: [{ports: [{port: 80, protocol: UDP}]}]}`, `spec: {egress: [{ports: [{port: 80, protocol: UDP}]}], policyTypes: [Ingress, Egress]}`},
	{"of a type", "networking.k8s.io/v1", "NetworkPolicy", `spec: {egress: [{}], policyTypes: [Egress]}`, `spec: {egress: [{}], policyTypes: [Egress]}`},

	{"plain", "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", `webhooks: [{name: w, clientConfig: {service: {name: s}}, rules: [{resources: [pods]}]}]`,
		`webhooks: [{name: w, clientConfig: {service: {name: s, port: 443}}, rules: [{resources: [pods], scope: "*"}], ` + webhookDefaults + `}]`},
	{"plain", "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", `webhooks: [{name: w, clientConfig: {url: u}, rules: [{scope: Cluster}]}]`,
		`webhooks: [{name: w, clientConfig: {url: u}, rules: [{scope: Cluster}], reinvocationPolicy: Never, ` + webhookDefaults + `}]`},
	{"plain", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", `spec: {matchConstraints: {resourceRules: [{resources: [pods]}], excludeResourceRules: [{resources: [nodes]}]}}`,
		`spec: {failurePolicy: Fail, matchConstraints: {resourceRules: [{resources: [pods], scope: "*"}], excludeResourceRules: [{resources: [nodes], scope: "*"}], ` + matchDefaults + `}}`},
	{"plain", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", `spec: {policyName: p, matchResources: {}}`, `spec: {policyName: p, matchResources: {` + matchDefaults + `}}`},
	{"plain", "admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", `spec: {failurePolicy: Ignore}`, `spec: {failurePolicy: Ignore}`},
	{"plain", "admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", `spec: {policyName: p}`, `spec: {policyName: p}`},

	{"plain", "flowcontrol.apiserver.k8s.io/v1", "FlowSchema", `spec: {priorityLevelConfiguration: {name: p}}`, `spec: {priorityLevelConfiguration: {name: p}, matchingPrecedence: 1000}`},
	{"limited", "flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", `spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {queues: 0, handSize: 6}}}}`,
		`spec: {type: Limited, limited: {nominalConcurrencyShares: 30, lendablePercent: 0, limitResponse: {type: Queue, queuing: {queues: 64, handSize: 6, queueLengthLimit: 50}}}}`},
	{"limited to nothing", "flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", `spec: {type: Limited, limited: {nominalConcurrencyShares: 0, limitResponse: {type: Reject}}}`,
		`spec: {type: Limited, limited: {nominalConcurrencyShares: 0, lendablePercent: 0, limitResponse: {type: Reject}}}`},
	{"exempt", "flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", `spec: {type: Exempt, exempt: {}}`, `spec: {type: Exempt, exempt: {nominalConcurrencyShares: 0, lendablePercent: 0}}`},

	{"plain", "image.openshift.io/v1", "ImageStream", `spec: {tags: [{name: a}, {name: b, referencePolicy: {type: Local}}]}`,
		`spec: {lookupPolicy: {local: false}, tags: [{name: a, referencePolicy: {type: Source}}, {name: b, referencePolicy: {type: Local}}]}`},
}

const (
	containerDefaults = `terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File`
	podOthers         = `dnsPolicy: ClusterFirst, schedulerName: default-scheduler, terminationGracePeriodSeconds: 30, securityContext: {}`
	podDefaults       = `restartPolicy: Always, ` + podOthers
	jobDefaults       = `completionMode: NonIndexed, suspend: false, manualSelector: false`
	matchDefaults     = `matchPolicy: Equivalent, namespaceSelector: {}, objectSelector: {}`
	webhookDefaults   = `failurePolicy: Fail, timeoutSeconds: 10, ` + matchDefaults
)
