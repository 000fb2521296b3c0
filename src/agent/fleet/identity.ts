// Who this host is, for its fleet: what identifies the installation and the boot, beside the name and labels that people gave.
import { readBootId } from '../../platform/process/boot-id.js';
import type { Host } from '../state/host.js';
import type { HostIdentity } from './make-report.js';

/** @returns what reports and enrolments say of this host */
export function identityOf({ config: { host } }: Pick<Host, 'config'>, installId: string): HostIdentity {
  return { installId, bootId: readBootId(), host: host.id, labels: host.labels };
}
