"""ELMo inside other libraries, or in the place of one."""
