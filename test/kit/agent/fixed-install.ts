// The install id of an agent in a test process: constant, so that it always polls at the same phase, without marks of the
// machine.
import type { InstallSource } from '../../../src/agent/identity/install-id.js';

export const fixedInstall: InstallSource = { newId: () => '7e57'.repeat(8), readMarks: () => ({}) };
