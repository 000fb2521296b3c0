// Recognizes a fault of the host in the first line of a refusal: a read-only file system, a missing permission, a full disk or a
// failed name service. It remains a refusal, because the policy may be the cause: it can contain a path or a host that does not
// exist. Pure.
const faults: readonly (readonly [fault: string, pattern: RegExp])[] = [
  ['read-only file system', /\bEROFS\b|Read-only file system/i],
  ['no permission', /\bEACCES\b|Permission denied/i],
  ['not permitted', /\bEPERM\b|Operation not permitted/i],
  ['no space left', /\bENOSPC\b|No space left on device/i],
  [
    'no name service',
    /\bEAI_AGAIN\b|Temporary failure in name resolution|host not found|could ?n[o']t resolve host/i,
  ],
];

/** @returns the fault, as `no space left`; undefined if the line contains none */
export function hostFaultIn(firstLine: string): string | undefined {
  return faults.find(([, pattern]) => pattern.test(firstLine))?.[0];
}
