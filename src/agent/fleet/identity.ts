// The identity of this host in reports and enrolments: installation, boot, and the configured name and labels.
import { readBootId } from '../../platform/process/boot-id.js';
import type { Host } from '../state/host.js';
import type { HostIdentity } from './make-report.js';

/** @returns the identity for reports and enrolments */
export function identityOf({ config: { host } }: Pick<Host, 'config'>, installId: string): HostIdentity {
  return { installId, bootId: readBootId(), host: host.id, labels: host.labels };
}
