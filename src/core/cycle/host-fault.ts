// Whether the first line of a refusal names a fault of the host and not of the policy: a file system that cannot be written,
// a right that is missing, a full disk, a name service that is away. Pure. The refusal stays one, since a policy may be the
// reason: it can name a path or a host that does not exist.
const faults: readonly (readonly [fault: string, words: RegExp])[] = [
  ['read-only file system', /\bEROFS\b|Read-only file system/i],
  ['no permission', /\bEACCES\b|Permission denied/i],
  ['not permitted', /\bEPERM\b|Operation not permitted/i],
  ['no space left', /\bENOSPC\b|No space left on device/i],
  [
    'no name service',
    /\bEAI_AGAIN\b|Temporary failure in name resolution|host not found|could ?n[o']t resolve host/i,
  ],
];

/** @returns a word for the fault; undefined for a line that names none */
export function hostFaultIn(firstLine: string): string | undefined {
  return faults.find(([, words]) => words.test(firstLine))?.[0];
}
