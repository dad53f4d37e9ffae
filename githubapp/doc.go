// Package githubapp obtains the tokens with which a GitHub App acts on the repositories of one
// installation: for fetching, and for commit statuses.
//
//	Parse(Secret) -> Credentials -> Tokens.Token(client) -> Token, until it expires
//
// A token is requested with a JWT that the App's private key signs (RS256). Tokens are kept in memory until shortly
// before they expire, one per installation and key. So a rotated key takes effect at once. The caller's client
// decides where the request goes, and through which proxy.
package githubapp
