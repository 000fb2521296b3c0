// The install id of an agent in the process of a test: always the same, so that it polls at the same phase, and on a machine that
// nothing names.
import type { InstallSource } from '../../../src/agent/identity/install-id.js';

export const fixedInstall: InstallSource = { newId: () => '7e57'.repeat(8), readMarks: () => ({}) };
