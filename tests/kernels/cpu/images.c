/* SPDX-License-Identifier: Apache-2.0 */
/* Images resized and rearranged, and the best elements chosen, against the reference. */
#include "case.h"
#include "cpu/base/isa.h"

#include <criterion/criterion.h>

static const char *const images[] = {
        "Resize 2x3x5x7 scales=1,1,2,2",
        "Resize 2x3x5x7 scales=1,1,2,2 nhwc",
        "Resize 2x3x5x7:uint8 sizes=2,3,4,9 below:100",
        "Resize 2x3x5x7:int64 sizes=2,3,11,3 coordinate_transformation_mode=4 nearest_mode=2 below:100",
        "Resize 2x3x5x7 scales=1,1,2,2 mode=1",
        "Resize 2x3x5x7 scales=1,1,2,2 mode=1 nhwc",
        "Resize 2x17x5x7 sizes=2,17,9,20 mode=1 coordinate_transformation_mode=3 nhwc",
        "Resize 1x2x9x8 sizes=1,2,4,3 mode=1 antialias=1",
        "Resize 1x2x9x8 sizes=1,2,4,13 mode=2 antialias=1 nhwc",
        "Resize 2x3x5x7 scales=1,1,0.6,1.7 mode=2 exclude_outside=1",
        "Resize 2x3x7 scales=1,1,2.5 mode=1",
        "Resize 2x3x7 scales=1,1,2.5 mode=1 nhwc",
        "Resize 1x3x1x1 sizes=1,3,4,4 mode=1 coordinate_transformation_mode=2",
        "ConvTranspose 2x6x5x7 6x5x3x3 5 strides=2,2 pads=1,1,1,1 nhwc",
        "ConvTranspose 1x6x5x7 6x40x4x2 strides=2,3 pads=0,2,3,1 output_padding=1,2 dilations=1,2 nhwc",
        "ConvTranspose 2x6x5x7 6x5x3x3 15 group=3 strides=1,2 nhwc",
        "ConvTranspose 1x3x9 3x20x5 strides=3 pads=2,1 nhwc",
        "ConvTranspose 1x4x3x2x3 4x3x2x3x2 3 strides=2,1,2 nhwc",
        "ConvTranspose 1x70x9x9 70x33x2x2 33 strides=2,2 nhwc",
        "DepthToSpace 2x12x3x4 block_size=2",
        "DepthToSpace 2x12x3x4 block_size=2 mode=1 nhwc",
        "DepthToSpace 1x18x3x4:uint8 block_size=3 mode=1 below:100",
        "SpaceToDepth 2x3x4x6 block_size=2",
        "SpaceToDepth 2x3x4x6 block_size=2 nhwc",
        "TopK 3x50 k=7 outputs:2",
        "TopK 3x50 k=50 largest=0 outputs:2",
        "TopK 3x20x5 k=3 axis=1",
        "TopK 1x1000 k=1 outputs:2",
};

Test(cpu_images, kernels_compute_what_the_reference_computes)
{
        if (!sl_cpu_has_avx2())
                cr_skip_test("without AVX2 what cpu has none of is for ref");
        case_check_all(images, sizeof(images) / sizeof(images[0]));
}
