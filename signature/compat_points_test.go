package signature_test

import (
	"crypto/elliptic"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/signature"
)

// Every rule has a test by its name, which the value names.
func TestCompatRulesAreTested(t *testing.T) {
	tests := map[string]string{
		"WeakHashes": "TestCompatRules", "WeakKeys": "TestCompatRules", "TrailingData": "TestCompatRules", "LooseJSON": "TestCompatRules",
		"NestedCompression": "TestCompatRules", "ExpiredKeys": "TestCompatRules", "Redirects": "TestCompatRedirects",
		"EmptyKeyrings": "TestCompatKeyrings", "FirstBlock": "TestCompatKeyrings", "NoEd25519": "TestCompatKeyrings", "FatalLists": "TestCompatLists",
	}
	fields := map[string]string{}
	operator := reflect.ValueOf(signature.OperatorRules())
	for i := range operator.NumField() {
		name := operator.Type().Field(i).Name
		fields[name] = tests[name]
		if !operator.Field(i).Bool() {
			t.Errorf("OperatorRules leaves %s out", name)
		}
	}
	if diff := cmp.Diff(tests, fields); diff != "" {
		t.Error(diff)
	}
}

// The differences from the operator that Compat does not cover, in the order in
// which CompatRules lists them.
func TestCompatDoesNotCover(t *testing.T) {
	k, s, other := rsa2048(), newECDSA(elliptic.P256()), newECDSA(elliptic.P256())
	public := k.public(cert{})
	ops, lit, sigPacket := k.parts(msg{})
	revokedSub := pkt(2, k.sign(sig{typ: 0x28}, k.hashed(), s.hashed()))
	for _, tt := range []struct {
		name          string
		ring, message []byte
		ok            bool
	}{
		{"what all are made of", public, k.message(msg{}), true},
		{"size", public, cat(k.message(msg{}), make([]byte, signature.MaxMessage)), false},
		{"two one-pass signatures", public, cat(ops, ops, lit, sigPacket), false},
		{"a packet in between", public, cat(ops, pkt(13, []byte("x")), lit, sigPacket), false},
		{"type of the one-pass signature", public, k.message(msg{opsType: new(byte(1))}), false},
		{"hash of the one-pass signature", public, k.message(msg{opsHash: 10}), false},
		{"algorithm of the one-pass signature", public, k.message(msg{opsAlgo: 3}), false},
		{"issuer of another", public, k.message(msg{sig: sig{issuer: other.id}}), false},
		{"critical notation", public, k.message(msg{sig: sig{hashed: sub(0x80|20, []byte{0, 0, 0, 0, 0, 1, 0, 1, 'a', 'b'})}}), false},
		{"hash tag", public, k.message(msg{sig: sig{badTag: true}}), false},
		{"RIPEMD-160", public, k.message(msg{sig: sig{hash: 3}}), false},
		{"version 2", public, k.message(msg{sig: sig{version: 2}}), false},
		{"two expiries", public, k.message(msg{sig: sig{hashed: cat(sub(3, u32(0)), sub(3, u32(0)))}}), false},
		{"expiry of 0", public, k.message(msg{sig: sig{hashed: sub(3, u32(0))}}), true},
		{"older than its key", public, k.message(msg{sig: sig{created: keyTime.AddDate(-1, 0, 0)}}), false},
		{"subkey", cat(public, k.subkey(s, nil, 0, true)), s.message(msg{}), true},
		{"subkey revoked without a reason", cat(public, k.subkey(s, nil, 0, true), revokedSub), s.message(msg{}), false},
		{"private key", cat(public, pkt(7, s.body)), k.message(msg{}), false},
		{"revocation that matches nothing", cat(public, revokedSub), k.message(msg{}), false},
		{"primary of a bad subkey", cat(public, k.subkey(s, nil, 0, false)), k.message(msg{}), true},
		{"revocation behind a subkey", cat(public, k.subkey(s, nil, 0, true), pkt(2, k.sign(sig{typ: 0x20}, k.hashed()))), k.message(msg{}), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := signature.OperatorRules().ParseKeyring("ring", tt.ring)
			if err == nil {
				_, err = verify(t, r, tt.message, signature.Options{Compat: true})
			}
			if (err == nil) != tt.ok {
				t.Errorf("accepted %v, want %v: %v", err == nil, tt.ok, cause(err))
			}
		})
	}
}
