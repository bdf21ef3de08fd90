// Package rhel updates compute machines that run Red Hat Enterprise Linux from
// packages, after the cluster has been updated: what OpenShift documents as the
// playbook upgrade.yml of openshift-ansible.
//
// [New] returns an action of plans that does it to one node, over [hosts.Runner]. A plan
// ([hosts.PlanRHEL]) has it done to all, strictly one by one, with hooks, cordon
// and drain around it. The action:
//
//  1. The host must have RHEL 8.6 or later; RHEL 7 has to be replaced.
//  2. firewalld is stopped and disabled.
//  3. The repositories of other releases of OpenShift are disabled, and those of
//     the new one enabled.
//  4. The packages are updated by yum, detached from the connection.
//  5. The kubelet must be the one of the new release's Kubernetes. A host with the wrong one is not restarted.
//  6. The host is restarted, once, and its node has to become Ready and report
//     that kubelet.
//
// Each part can be done again, so what was interrupted is continued. A command
// that fails stops the plan, and the node stays cordoned.
//
// RHEL compute machines are deprecated, and gone from OpenShift 4.19 on.
//
// Values without methods of their own are plain data: safe for concurrent reads.
//
// Source: "Updating a cluster that includes RHEL compute machines",
// https://docs.openshift.com/.
package rhel
