package node

import "strings"

// flags are the capabilities a node announces in the handshake, named as in
// dist.hrl.
type flags uint64

const (
	flagPublished          flags = 1 << 0
	flagExtendedReferences flags = 1 << 2
	flagDistMonitor        flags = 1 << 3
	flagFunTags            flags = 1 << 4
	flagDistMonitorName    flags = 1 << 5
	flagNewFunTags         flags = 1 << 7
	flagExtendedPidsPorts  flags = 1 << 8
	flagExportPtrTag       flags = 1 << 9
	flagBitBinaries        flags = 1 << 10
	flagNewFloats          flags = 1 << 11
	flagUnicodeIO          flags = 1 << 12
	flagDistHdrAtomCache   flags = 1 << 13
	flagSmallAtomTags      flags = 1 << 14
	flagUTF8Atoms          flags = 1 << 16
	flagMapTag             flags = 1 << 17
	flagBigCreation        flags = 1 << 18
	flagSendSender         flags = 1 << 19
	flagExitPayload        flags = 1 << 22
	flagFragments          flags = 1 << 23
	flagHandshake23        flags = 1 << 24
	flagUnlinkID           flags = 1 << 25
	flagMandatory25Digest  flags = 1 << 26
	flagSpawn              flags = 1 << 32
	flagNameMe             flags = 1 << 33
	flagV4NC               flags = 1 << 34
	flagAlias              flags = 1 << 35
)

// mandatory25 is what every node of OTP 25 insists on, and what the digest flag
// stands for.
const mandatory25 = flagExtendedReferences | flagFunTags | flagNewFunTags |
	flagExtendedPidsPorts | flagExportPtrTag | flagBitBinaries | flagNewFloats |
	flagUTF8Atoms | flagMapTag | flagBigCreation | flagHandshake23

// ourFlags is what this node announces. The mandatory set is written out beside
// the digest flag because OTP 23 does not know the digest. V4_NC and UNLINK_ID
// are mandatory from OTP 26. Without PUBLISHED the node is hidden; without SPAWN
// the BEAM refuses remote spawns itself; without FRAGMENTS and DIST_HDR_ATOM_CACHE
// frames come whole and in pass-through form; without EXIT_PAYLOAD and
// SEND_SENDER the plain forms of those signals come.
const ourFlags = mandatory25 | flagMandatory25Digest | flagDistMonitor |
	flagDistMonitorName | flagUnicodeIO | flagSmallAtomTags | flagUnlinkID |
	flagV4NC | flagAlias

// requiredFlags is what a peer must announce: we send new pids and references
// and UTF-8 atoms, and speak no handshake but the sixth version's.
const requiredFlags = flagExtendedReferences | flagExtendedPidsPorts |
	flagUTF8Atoms | flagBigCreation | flagHandshake23

// expand writes out what the digest flag stands for.
func (f flags) expand() flags {
	if f&flagMandatory25Digest != 0 {
		f |= mandatory25
	}
	return f
}

// monitors tells whether a monitor may be sent to a peer with which f is agreed on.
// C nodes made with erl_interface announce DIST_MONITOR, but a monitor is an error
// to them that ends the link; DIST_MONITOR_NAME they do not announce.
func (f flags) monitors() bool {
	const both = flagDistMonitor | flagDistMonitorName
	return f.expand()&both == both
}

// missing names the required flags that f lacks.
func (f flags) missing() string {
	lack := requiredFlags &^ f.expand()
	var names []string
	for _, n := range [...]struct {
		bit  flags
		name string
	}{
		{flagExtendedReferences, "EXTENDED_REFERENCES"},
		{flagExtendedPidsPorts, "EXTENDED_PIDS_PORTS"},
		{flagUTF8Atoms, "UTF8_ATOMS"},
		{flagBigCreation, "BIG_CREATION"},
		{flagHandshake23, "HANDSHAKE_23"},
	} {
		if lack&n.bit != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ", ")
}
