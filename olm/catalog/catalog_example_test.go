package catalog_test

import (
	"context"
	"fmt"
	"strings"
	"testing/fstest"

	"github.com/blang/semver/v4"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// A catalog is a tree of files; one channel of this one breaks a rule, and the
// other one works all the same.
func ExampleLoad() {
	files := fstest.MapFS{
		"etcd/catalog.yaml": {Data: []byte(`
schema: olm.package
name: etcd
defaultChannel: stable
---
schema: olm.channel
package: etcd
name: stable
entries:
- name: etcd.v0.9.4
  replaces: etcd.v0.9.2
- name: etcd.v0.9.2
---
schema: olm.channel
package: etcd
name: alpha
entries:
- name: etcd.v0.9.4
- name: etcd.v0.9.2
`)},
		"etcd/bundles.json": {Data: []byte(`
{"schema": "olm.bundle", "package": "etcd", "name": "etcd.v0.9.2", "image": "registry.example/etcd:0.9.2",
 "properties": [{"type": "olm.package", "value": {"packageName": "etcd", "version": "0.9.2"}}]}
{"schema": "olm.bundle", "package": "etcd", "name": "etcd.v0.9.4", "image": "registry.example/etcd:0.9.4",
 "properties": [{"type": "olm.package", "value": {"packageName": "etcd", "version": "0.9.4"}},
                {"type": "olm.gvk", "value": {"group": "etcd.database.coreos.com", "version": "v1beta2", "kind": "EtcdCluster"}}]}
`)},
	}
	catalog, err := catalog.Load(context.Background(), files, catalog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range catalog.Packages() {
		for _, ch := range p.Channels {
			for _, e := range ch.Ordered {
				fmt.Println(p.Name, ch.Name, e.Name, e.Bundle.Provides)
			}
		}
	}
	for _, p := range catalog.Problems() {
		fmt.Println(&p)
	}
	// Output:
	// etcd stable etcd.v0.9.4 [etcd.database.coreos.com/v1beta2, Kind=EtcdCluster]
	// etcd stable etcd.v0.9.2 []
	// etcd/catalog.yaml:14: document 3: invalid package "etcd": invalid channel "alpha": multiple channel heads found in graph: etcd.v0.9.2, etcd.v0.9.4
}

func ExampleChannel_Updates() {
	catalog, err := catalog.Read(context.Background(), strings.NewReader(`
{"schema": "olm.package", "name": "p", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "p", "name": "stable", "entries": [
  {"name": "p.v3", "replaces": "p.v2", "skipRange": "<3.0.0"},
  {"name": "p.v2", "replaces": "p.v1"},
  {"name": "p.v1"}]}
{"schema": "olm.bundle", "package": "p", "name": "p.v1", "image": "registry.example/p:1", "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}}]}
{"schema": "olm.bundle", "package": "p", "name": "p.v2", "image": "registry.example/p:2", "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "2.0.0"}}]}
{"schema": "olm.bundle", "package": "p", "name": "p.v3", "image": "registry.example/p:3", "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "3.0.0"}}]}
`), "catalog.json", catalog.Options{Strict: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	installed := semver.MustParse("1.0.0")
	for _, e := range catalog.Package("p").Channel("stable").Updates("p.v1", &installed) {
		fmt.Println(e.Name)
	}
	// Output:
	// p.v3
	// p.v2
}

func ExampleParseRange() {
	r, err := olm.ParseRange(">=1.0.0 <2.0.0")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range []string{"1.5.0", "2.0.0-rc.1", "2.0.0"} {
		fmt.Println(v, r.Contains(semver.MustParse(v)))
	}
	_, err = olm.ParseRange("1.0.0 || || 2.0.0")
	fmt.Println(err)
	// Output:
	// 1.5.0 true
	// 2.0.0-rc.1 true
	// 2.0.0 false
	// could not parse range "1.0.0 || || 2.0.0": nothing between || and ||
}
