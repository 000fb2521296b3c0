// Caches the verdicts on retained releases while the trusted metadata is the same: a poll without a change verifies no signature
// again, and a role that many releases need is parsed once.
import {
  type KeptRole,
  type ReleaseProof,
  type StillVerdict,
  stillVerifies,
} from '../core/tuf/still-verifies.js';
import { maxOtherBytes } from '../core/tuf/target-search.js';
import { recallFile, type TrustedSet } from '../core/tuf/trusted-set.js';
import type { ParsedFile } from '../core/tuf/tuf-metadata.js';

type StoredRole = (name: string) => Uint8Array | undefined;

/** @param stored returns the stored bytes of a delegated role */
export function rememberVerdicts(stored: StoredRole): (set: TrustedSet, proof: ReleaseProof) => StillVerdict {
  let judgedBy: Pick<TrustedSet, 'root' | 'targets' | 'delegated'> | undefined;
  let known = new Map<string, StillVerdict>();
  let recall = rememberFiles(stored);
  return (set, proof) => {
    const isSame =
      judgedBy?.root === set.root && judgedBy.targets === set.targets && judgedBy.delegated === set.delegated;
    if (!isSame) {
      known = new Map();
      recall = rememberFiles(stored);
    }
    judgedBy = set;
    const key = JSON.stringify([proof.path, proof.sha256, proof.length, proof.role, proof.evidence]);
    const kept: KeptRole = (name) => set.delegated?.get(name) ?? recall(name);
    const verdict = known.get(key) ?? stillVerifies(set, proof, kept);
    // A record that does not verify may be renewed, so that a negative verdict on a record is not cached.
    if (proof.evidence === undefined || verdict.kind === 'verifies') known.set(key, verdict);
    return verdict;
  };
}

/** Caches at most the bytes that a search may use without its greatest file, because parsed files take ten times their size. */
function rememberFiles(stored: StoredRole): KeptRole {
  const held = new Map<string, ParsedFile<'targets'> | undefined>();
  let heldBytes = 0;
  return (name) => {
    if (held.has(name)) return held.get(name);
    const file = recallFile(stored(name), 'targets', name);
    const bytes = file?.bytes.length ?? 0;
    if (heldBytes + bytes > maxOtherBytes) return file;
    heldBytes += bytes;
    held.set(name, file);
    return file;
  };
}
