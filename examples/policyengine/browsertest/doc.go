// Package browsertest tests the page of the example policyengine in a browser. It has
// a module of its own, so that nothing else depends on what drives the browser.
package browsertest
