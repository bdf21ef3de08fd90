package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

// How the cluster is called: by itself, and by OCM.
const (
	externalID = "3f1c52c4-0a55-4a1d-9c1b-2f6c1f1d7a10"
	internalID = "1a2b"
)

// manager: an OpenShift Cluster Manager, served on loopback, has the policies.
// It goes down for a while, a policy is cancelled, and another one is carried
// out.
func (s *stage) manager(ctx context.Context) (*story, error) {
	token := base64.StdEncoding.EncodeToString([]byte("user:of this run"))
	server := &ocmtest.Server{Token: token}
	server.SetCluster(ocmtest.Cluster{ID: internalID, ExternalID: externalID, Version: sample.FromVersion, ChannelGroup: "stable", DrainMinutes: 60})
	secret := ocmtest.Objects(externalID, token)[0]
	if _, err := s.cluster.Create(ctx, secret, clusterapi.CreateOptions{}); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	served := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	go served.Serve(listener)

	provider, err := ocm.New(s.cluster, ocm.Options{
		URL: "http://" + listener.Addr().String(), Type: upgradeconfig.OSD, Clock: s.clock, Observe: s.view.config,
		Rand: func(n int64) int64 { return n / 2 }, // the middle of each wait, so that runs are alike
	})
	if err != nil {
		served.Close()
		return nil, err
	}
	requests := 0
	end := func() error {
		for _, p := range []string{"p-1", "p-2"} {
			if policy, ok := server.Policy(internalID, p); ok {
				s.view.say("OCM", "in the end policy %s is %s: %s", p, policy.State, policy.Description)
			}
		}
		s.view.say("OCM", "has answered %d requests", requests+len(server.Requests()))
		return served.Close()
	}
	return &story{provider: provider, play: func(ctx context.Context, wake func()) error { return s.playOCM(ctx, server, wake, &requests) }, end: end}, nil
}

func (s *stage) playOCM(ctx context.Context, server *ocmtest.Server, wake func(), requests *int) error {
	set := func(id string, in time.Duration, state string) (at string) {
		p := ocmtest.Policy{ID: id, Version: sample.ToVersion, NextRun: s.in(in), State: state}
		s.view.say("OCM", "policy %s is %s: %s at %s", id, state, p.Version, s.minute(p.NextRun))
		server.SetPolicy(internalID, p)
		return p.NextRun
	}
	// asked waits until OCM has been asked so often.
	asked := func(n int) error {
		for len(server.Requests()) < n {
			if err := s.wait(ctx, 30*time.Second); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.planned(ctx, set("p-1", 2*time.Hour, "scheduled")); err != nil {
		return err
	}
	if err := s.planned(ctx, set("p-1", 4*time.Hour, "scheduled")); err != nil {
		return err
	}

	s.view.say("OCM", "is down; the UpgradeConfig stays")
	*requests += len(server.Requests())
	server.Forget()
	server.Fail(ocmtest.Fault{Status: http.StatusServiceUnavailable, Always: true})
	if err := asked(3 * 6); err != nil { // three syncs, of which each tries six times
		return err
	}
	s.view.say("OCM", "is up again")
	*requests += len(server.Requests())
	server.Forget()
	if err := asked(3); err != nil {
		return err
	}

	set("p-1", 2*time.Hour, "cancelled")
	if err := s.gone(ctx); err != nil {
		return err
	}
	set("p-2", 20*time.Minute, "scheduled")
	for { // until the cluster has told OCM how it went
		p, _ := server.Policy(internalID, "p-2")
		if p.State == "failed" {
			return fmt.Errorf("policy p-2 failed: %s", p.Description)
		}
		if p.State == "completed" {
			break
		}
		if err := s.wait(ctx, 30*time.Second); err != nil {
			return err
		}
	}
	// What is done is no reason for an UpgradeConfig.
	wake()
	return s.gone(ctx)
}
