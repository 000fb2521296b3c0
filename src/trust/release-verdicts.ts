// Verdicts on kept releases, remembered as long as the trusted metadata is the same: a poll that finds nothing new
// verifies no signature again. Owns no rule of trust.
import { type ReleaseProof, type StillVerdict, stillVerifies } from '../core/tuf/still-verifies.js';
import type { TrustedSet } from '../core/tuf/trusted-set.js';

/** @param stored the bytes that the host keeps for a delegated role */
export function rememberVerdicts(
  stored: (name: string) => Uint8Array | undefined,
): (set: TrustedSet, proof: ReleaseProof) => StillVerdict {
  let judgedBy: Pick<TrustedSet, 'root' | 'targets' | 'delegated'> | undefined;
  let known = new Map<string, StillVerdict>();
  return (set, proof) => {
    const isSame =
      judgedBy?.root === set.root && judgedBy.targets === set.targets && judgedBy.delegated === set.delegated;
    if (!isSame) known = new Map();
    judgedBy = set;
    const key = JSON.stringify([proof.path, proof.sha256, proof.length, proof.role]);
    const verdict = known.get(key) ?? stillVerifies(set, proof, stored);
    known.set(key, verdict);
    return verdict;
  };
}
