package node

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestFlagsOfDistHrl compares the flags with the ones of the installed OTP.
func TestFlagsOfDistHrl(t *testing.T) {
	t.Parallel()
	b := startBEAM(t, testEPMD(t), testCookie)
	dir, err := strconv.Unquote(b.eval("code:lib_dir(kernel)."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "include", "dist.hrl"))
	if err != nil {
		t.Skip(err) // the header comes with erlang-dev, which make test installs
	}
	ours := map[string]flags{
		"PUBLISHED": flagPublished, "EXTENDED_REFERENCES": flagExtendedReferences, "DIST_MONITOR": flagDistMonitor,
		"FUN_TAGS": flagFunTags, "DIST_MONITOR_NAME": flagDistMonitorName, "NEW_FUN_TAGS": flagNewFunTags,
		"EXTENDED_PIDS_PORTS": flagExtendedPidsPorts, "EXPORT_PTR_TAG": flagExportPtrTag, "BIT_BINARIES": flagBitBinaries,
		"NEW_FLOATS": flagNewFloats, "UNICODE_IO": flagUnicodeIO, "DIST_HDR_ATOM_CACHE": flagDistHdrAtomCache,
		"SMALL_ATOM_TAGS": flagSmallAtomTags, "UTF8_ATOMS": flagUTF8Atoms, "MAP_TAG": flagMapTag,
		"BIG_CREATION": flagBigCreation, "SEND_SENDER": flagSendSender, "EXIT_PAYLOAD": flagExitPayload,
		"FRAGMENTS": flagFragments, "HANDSHAKE_23": flagHandshake23, "UNLINK_ID": flagUnlinkID,
		"MANDATORY_25_DIGEST": flagMandatory25Digest, "SPAWN": flagSpawn, "NAME_ME": flagNameMe, "V4_NC": flagV4NC,
		"ALIAS": flagAlias,
	}
	found := 0
	for _, m := range regexp.MustCompile(`-define\(DFLAG_(\w+),\s*\(?16#(\w+)( bsl 32)?`).FindAllStringSubmatch(string(text), -1) {
		v, err := strconv.ParseUint(m[2], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if m[3] != "" {
			v <<= 32
		}
		if f, ok := ours[m[1]]; ok {
			found++
			if f != flags(v) {
				t.Errorf("%s is %#x here, %#x there", m[1], uint64(f), v)
			}
		}
	}
	if found != len(ours) {
		t.Errorf("found %d of %d flags", found, len(ours))
	}
	_, list, ok := strings.Cut(string(text), "MANDATORY_DFLAGS_25,")
	if !ok {
		return // as in releases before 25
	}
	list, _, _ = strings.Cut(list, ").")
	var mandatory flags
	for _, m := range regexp.MustCompile(`DFLAG_(\w+)`).FindAllStringSubmatch(list, -1) {
		mandatory |= ours[m[1]]
	}
	if mandatory != mandatory25 {
		t.Errorf("mandatory: %#x here, %#x there", uint64(mandatory25), uint64(mandatory))
	}
}

func TestFlagsAnnounced(t *testing.T) {
	t.Parallel()
	if never := ourFlags & (flagPublished | flagDistHdrAtomCache | flagFragments | flagSpawn | flagNameMe | flagExitPayload | flagSendSender); never != 0 {
		t.Errorf("announces %#x", uint64(never))
	}
	// What OTP 26 to 29 insist on.
	if lack := (mandatory25 | flagV4NC | flagUnlinkID) &^ ourFlags; lack != 0 {
		t.Errorf("lacks %#x", uint64(lack))
	}
	if m := flagMandatory25Digest.missing(); m != "" {
		t.Errorf("the digest lacks %s", m)
	}
	if m := (ourFlags &^ (flagMandatory25Digest | flagUTF8Atoms)).missing(); m != "UTF8_ATOMS" {
		t.Errorf("missing %q", m)
	}
}
