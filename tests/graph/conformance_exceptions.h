/* Cases of those operators that may be refused or differ, each group with its reason. */

/* Its expected values are cut off instead of being rounded to the nearest. */
"test_cast_FLOAT_to_BFLOAT16",
"test_castlike_FLOAT_to_BFLOAT16_expanded",

/* Strings. */
"test_cast_FLOAT_to_STRING",
"test_cast_STRING_to_FLOAT",
"test_castlike_FLOAT_to_STRING_expanded",
"test_castlike_STRING_to_FLOAT_expanded",

/* Training. */
"test_batchnorm_epsilon_training_mode",
"test_batchnorm_example_training_mode",
"test_training_dropout",
"test_training_dropout_default",
"test_training_dropout_default_mask",
"test_training_dropout_mask",
"test_training_dropout_zero_ratio",
"test_training_dropout_zero_ratio_mask",

/* Sequences and optional values. */
"test_identity_opt",
"test_identity_sequence",

/* A length that each request would bring. */
"test_blackmanwindow_expanded",
"test_blackmanwindow_symmetric_expanded",
"test_hammingwindow_expanded",
"test_hammingwindow_symmetric_expanded",
"test_hannwindow_expanded",
"test_hannwindow_symmetric_expanded",

/* Opset 6 in truth: the attributes is_test and broadcast, and a PRelu with one slope for each channel. */
"test_BatchNorm1d_3d_input_eval",
"test_BatchNorm2d_eval",
"test_BatchNorm2d_momentum_eval",
"test_BatchNorm3d_eval",
"test_BatchNorm3d_momentum_eval",
"test_Linear",
"test_PReLU_1d_multiparam",
"test_PReLU_2d_multiparam",
"test_PReLU_3d_multiparam",
"test_Softsign",
"test_operator_add_broadcast",
"test_operator_add_size1_broadcast",
"test_operator_add_size1_right_broadcast",
"test_operator_add_size1_singleton_broadcast",
"test_operator_addconstant",
"test_operator_addmm",
"test_operator_mm",
