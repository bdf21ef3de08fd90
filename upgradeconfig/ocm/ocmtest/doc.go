// Package ocmtest is an OpenShift Cluster Manager for tests: a [Server] with
// clusters, their upgrade policies and states, in memory, that fails on demand. It
// speaks the parts of the wire format that concern upgrades:
//
//	GET   /api/clusters_mgmt/v1/clusters?search=external_id = 'UUID'
//	GET   /api/clusters_mgmt/v1/clusters/ID
//	GET   …/clusters/ID/upgrade_policies?page=1&size=100
//	GET   …/clusters/ID/upgrade_policies/POLICY
//	GET   …/clusters/ID/upgrade_policies/POLICY/state
//	PATCH …/clusters/ID/upgrade_policies/POLICY/state
//	GET   …/clusters/ID/control_plane/upgrade_policies
//	GET   …/clusters/ID/control_plane/upgrade_policies/POLICY
//	PATCH …/clusters/ID/control_plane/upgrade_policies/POLICY
//	POST  /api/service_logs/v1/cluster_logs
//	GET   /, as the OCM agent in a cluster answers
//
// A Server is an [http.Handler], for httptest.NewServer or any other server.
// Where no network is wanted, as in the virtual time of testing/synctest,
// [Transport] calls it directly:
//
//	server := &ocmtest.Server{Token: "dG9rZW4="}
//	server.SetCluster(ocmtest.Cluster{ID: "1a2b", ExternalID: uuid, Policies: []ocmtest.Policy{{ID: "p-7", Version: "4.17.4", NextRun: "2031-02-04T03:00:00Z"}}})
//	provider, err := ocm.New(cluster, ocm.Options{Base: ocmtest.Transport(server)})
//
// [Server.Fail] scripts failures: statuses, delays, answers that break off or say
// something else, and those that are lost after the request had its effect.
// [Server.Requests] and [Server.ServiceLogs] return what it received.
//
// The wire format is the public API's, https://api.openshift.com. Policies do not
// run by themselves here: the test changes their states. Plain data is safe for
// concurrent use as long as nobody changes it.
package ocmtest
