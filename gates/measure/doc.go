// Package measure evaluates gates of the types prometheus and webhook: it asks a server, within the
// bounds of the transport. The text of a server is shortened and made visible, and contains no
// credential of the gate.
//
// The address of a measurement is in Git, and its credentials are in a Secret on the hub. The author of a commit must
// not be able to send the credentials elsewhere. So the Secret itself names the host, in the annotation
// addonflow.io/gate-host.
package measure
